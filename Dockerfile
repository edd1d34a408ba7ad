# syntax=docker/dockerfile:1

# Final image: `distroless` (default) or `debian` (has a shell).
#   docker build --build-arg RUNTIME=debian -t engine-ssz-proxy .
ARG RUNTIME=distroless
ARG RUST_VERSION=1.95

FROM rust:${RUST_VERSION}-slim-bookworm AS chef
RUN cargo install cargo-chef --locked
WORKDIR /build

# The list of dependencies alone, so that a change of the sources does not build them again.
FROM chef AS plan
COPY . .
RUN cargo chef prepare --recipe-path recipe.json

FROM chef AS build
COPY --from=plan /build/recipe.json recipe.json
RUN cargo chef cook --release --locked --recipe-path recipe.json
COPY . .
RUN cargo build --release --locked --bin engine-ssz-proxy \
    && mkdir -p /out/app \
    && cp target/release/engine-ssz-proxy /out/app/ \
    # The stock Kurtosis ethereum-package starts its snooper as ./json_rpc_snoop.
    && ln -s engine-ssz-proxy /out/app/json_rpc_snoop

FROM gcr.io/distroless/cc-debian12:nonroot AS runtime-distroless

FROM debian:bookworm-slim AS runtime-debian
RUN useradd --uid 65532 --no-create-home --shell /usr/sbin/nologin nonroot

FROM runtime-${RUNTIME}
COPY --from=build /out/app /app
WORKDIR /app
USER 65532:65532
ENV ENGINE_SSZ_PROXY_LISTEN_ADDRESS=0.0.0.0
EXPOSE 8551
ENTRYPOINT ["/app/engine-ssz-proxy"]
