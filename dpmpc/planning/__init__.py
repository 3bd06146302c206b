"""What a user asks of a training run, and the plan that follows of it and of what is public: nothing is opened here."""
