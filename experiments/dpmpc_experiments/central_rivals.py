"""What a trusted curator could run with the same promise, each as its authors' documentation has it.

A rival whose package is not installed is left out and named, in one line. None of them is a dependency.
"""

import importlib
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmpc.lazy import dataclass
from dpmpc.learning.losses import LOGISTIC, ridge
from dpmpc.privacy.gaussian import epsilon_of_mu, mu_of_budget

if TYPE_CHECKING:
    from dpmpc_experiments.central import Mapped, Split

Floats = NDArray[np.float64]
Survey = Callable[["Split", Any, np.random.Generator], "Mapped"]

LENGTH, STEP = 1000.0, 4.0  # of the curator's descent, one for all sets; a quarter of the length for ridge
CLIP = 0.25  # of its residuals
EPOCHS, BATCH, RATE, UNITS = 20, 256, 1.0, 32  # of Opacus: passes, records a step, step, units of the network


@dataclass(frozen=True)
class Rival:
    """One learner. `easier`: what makes its promise weaker than ours, if anything; `private`: whether it has one."""

    run: Callable[["Split", Survey], Floats]
    tasks: tuple[str, ...] = ("logistic",)
    package: str | None = None
    install: str = ""
    easier: str = ""
    private: bool = True

    @property
    def missing(self) -> str | None:
        """Why it cannot run here, and what to install; None if it can."""
        if self.package is None:
            return None
        try:
            importlib.import_module(self.package)
        except ImportError as error:
            return f"{self.install} ({str(error).splitlines()[0][:80]})"
        return None


def _descent(split: "Split", survey: Survey) -> Floats:
    """Full-batch gradient descent on the survey's straight features, noise by 2G at every iterate, last iterate."""
    rng = np.random.default_rng([0xD0, split.seed, round(1e6 * split.epsilon)])
    mapped = survey(split, "linear", rng)
    X, target = mapped.X[split.train], mapped.schema.target
    y = split.raw.y[split.train] if not split.ridge else target.values(split.raw.y[split.train])  # type: ignore[arg-type]
    loss = ridge(CLIP) if split.ridge else LOGISTIC
    step = 1.0 if split.ridge else STEP
    iterations = math.ceil((LENGTH / 4 if split.ridge else LENGTH) / step)
    mu = math.sqrt(mu_of_budget(split.epsilon, split.delta) ** 2 - mapped.spent)
    sigma = math.sqrt(iterations) * 2 * loss.G / (len(y) * mu)
    theta = np.zeros(X.shape[1])
    for _ in range(iterations):
        slope = loss.derivative(X @ theta, y)
        theta = theta - step * (X.T @ slope / len(y) + sigma * rng.standard_normal(len(theta)))
    scores = mapped.X[split.test] @ theta
    return target.original(scores) if split.ridge else scores  # type: ignore[union-attr]


def _diffprivlib(split: "Split", survey: Survey) -> Floats:
    """Objective perturbation on the survey's straight features, which it gets for nothing."""
    from diffprivlib.models import LogisticRegression

    mapped = survey(split, "linear", np.random.default_rng([0xD1, split.seed]))
    seed = int(np.random.default_rng([split.seed, round(1e6 * split.epsilon)]).integers(1 << 30))
    C = max(1.0, len(split.train) * split.epsilon / 200)
    model = LogisticRegression(epsilon=split.epsilon, data_norm=1.0, C=C, max_iter=500, random_state=seed,
                               fit_intercept=False)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(mapped.X[split.train], (split.raw.y[split.train] > 0).astype(int))
    return np.asarray(mapped.X[split.test] @ model.coef_[0])


def _opacus(hidden: int) -> Callable[["Split", Survey], Floats]:
    """Opacus' DP-SGD on the survey's straight features, which it gets for nothing: a logistic regression, or a network
    of one layer of so many units; EPOCHS passes by Poisson samples of BATCH, its accountant (PRV) and half the mu, as
    of `_ebm`: its promise is for records that are added or removed. Settings by three sets of the corpus."""

    def run(split: "Split", survey: Survey) -> Floats:
        import torch  # type: ignore[import-not-found,unused-ignore]  # comes with opacus
        from opacus import GradSampleModule  # type: ignore[import-not-found,unused-ignore]
        from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found,unused-ignore]
        from opacus.optimizers import DPOptimizer  # type: ignore[import-not-found,unused-ignore]

        torch.manual_seed(split.seed)
        X = torch.tensor(survey(split, "linear", np.random.default_rng([0xD1, split.seed])).X, dtype=torch.float32)
        y = torch.tensor(split.raw.y[split.train] > 0, dtype=torch.float32)
        rows, n = X[torch.tensor(split.train)], len(y)
        rate = min(1.0, BATCH / n)
        steps = round(EPOCHS / rate)
        epsilon = epsilon_of_mu(mu_of_budget(split.epsilon, split.delta) / 2, split.delta)
        noise = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=split.delta, sample_rate=rate, steps=steps, accountant="prv"
        )
        inner = [torch.nn.Linear(X.shape[1], hidden), torch.nn.Tanh()] if hidden else []
        net = GradSampleModule(torch.nn.Sequential(*inner, torch.nn.Linear(hidden or X.shape[1], 1)))
        plain, loss = torch.optim.SGD(net.parameters(), lr=RATE), torch.nn.BCEWithLogitsLoss()
        descent = DPOptimizer(plain, noise_multiplier=noise, max_grad_norm=1.0, expected_batch_size=round(rate * n))
        for _ in range(steps):
            chosen = torch.rand(n) < rate
            descent.zero_grad()
            if chosen.any():
                loss(net(rows[chosen]).squeeze(1), y[chosen]).backward()
                descent.step()
        with torch.no_grad():
            return np.asarray(net(X[torch.tensor(split.test)]).squeeze(1).numpy(), dtype=np.float64)

    return run


def _boosting_frame(split: "Split") -> Any:
    import pandas as pd

    frame: dict[str, Any] = {}
    for name, column in split.raw.columns.items():
        if column.dtype.kind == "f":
            frame[name] = np.where(np.isnan(column), np.nanmedian(column), column)
        else:
            frame[name] = pd.Series(["" if text is None else text for text in column], dtype=object)
    return pd.DataFrame(frame)


def _ebm(split: "Split", survey: Survey) -> Floats:
    """interpret's DP-EBM, with half the mu: it promises for records that are added or removed."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    frame, numbers = _boosting_frame(split), set(split.raw.numbers)
    epsilon = epsilon_of_mu(mu_of_budget(split.epsilon, split.delta) / 2, split.delta)
    options: dict[str, Any] = {
        "epsilon": epsilon, "delta": split.delta, "composition": "gdp", "n_jobs": 1, "random_state": split.seed,
        "feature_types": ["continuous" if name in numbers else "nominal" for name in frame.columns],
    }  # fmt: skip
    y = split.raw.y[split.train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if split.ridge:
            model = DPExplainableBoostingRegressor(
                privacy_target_min=float(split.raw.y.min()), privacy_target_max=float(split.raw.y.max()), **options
            )
            return np.asarray(model.fit(frame.iloc[split.train], y).predict(frame.iloc[split.test]))
        model = DPExplainableBoostingClassifier(**options).fit(frame.iloc[split.train], (y > 0).astype(int))
        return np.asarray(model.decision_function(frame.iloc[split.test]), dtype=np.float64)


def _boosting(split: "Split", survey: Survey) -> Floats:
    """Gradient boosting without any promise: what there is to learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    frame = _boosting_frame(split)
    X = np.column_stack([c if c.dtype.kind == "f" else np.unique(c.astype(str), return_inverse=True)[1]
                         for c in (frame[name].to_numpy() for name in frame)]).astype(np.float64)  # fmt: skip
    y = split.raw.y[split.train]
    if split.ridge:
        return np.asarray(HistGradientBoostingRegressor(random_state=1).fit(X[split.train], y).predict(X[split.test]))
    model = HistGradientBoostingClassifier(random_state=1).fit(X[split.train], y > 0)
    return np.asarray(model.decision_function(X[split.test]), dtype=np.float64)


RIVALS = {
    "descent": Rival(_descent, ("logistic", "ridge")),
    "diffprivlib": Rival(
        _diffprivlib, package="diffprivlib.models", install="pip install diffprivlib",
        easier="pure epsilon; ranges and categories by a survey that it does not pay for",
    ),
    "DP-EBM": Rival(
        _ebm, ("logistic", "ridge"), "interpret.privacy", "pip install interpret-core",
        "ranges, categories and the target's range read off the records",
    ),
    "Opacus": Rival(
        _opacus(0), package="opacus", install="pip install opacus",
        easier="ranges and categories by a survey that it does not pay for",
    ),
    "Opacus network": Rival(
        _opacus(UNITS), package="opacus", install="pip install opacus",
        easier="ranges and categories by a survey that it does not pay for",
    ),
    "boosting": Rival(_boosting, ("logistic", "ridge"), private=False),
}  # fmt: skip
