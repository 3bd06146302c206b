# One process of a run in a container: docker build -t dpmpc:0.2.0 . ; docker run dpmpc:0.2.0 --help
# Kits (docs/consortium.md) are mounted at /kit, the account of what is spent at /account ($DPMPC_ACCOUNT); nothing of a
# run is in the image.
FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev python3-dev python3-venv
COPY . /src
RUN python3 -m venv /opt/dpmpc && /opt/dpmpc/bin/pip install --no-cache-dir /src

FROM debian:trixie-slim
RUN apt-get update && apt-get install --yes --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/dpmpc /opt/dpmpc
RUN useradd --uid 1000 --create-home dpmpc
ENV PATH=/opt/dpmpc/bin:/usr/local/bin:/usr/bin:/bin
USER dpmpc
WORKDIR /kit
ENTRYPOINT ["dpmpc"]
CMD ["--help"]
