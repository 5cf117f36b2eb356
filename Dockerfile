# The operator and the command in one static binary, without a shell, as a user that owns nothing.
# Whoever may not pull from that registry names another base: static, with certificates of authorities.
ARG BASE=gcr.io/distroless/static-debian12:nonroot@sha256:afa5c872c891853ca7fcf1f12c3edb23f7eeef36189728842dd51042ff57f7ab

FROM rust:1.95-alpine@sha256:606fd313a0f49743ee2a7bd49a0914bab7deedb12791f3a846a34a4711db7ed2 AS build
RUN apk add --no-cache make=~4.4 musl-dev=~1.2
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY .cargo .cargo
# Cargo reads the manifest of each member of the workspace. The benchmark itself is not built.
COPY benchmark/Cargo.toml benchmark/
RUN mkdir benchmark/src && touch benchmark/src/lib.rs
COPY crates crates
COPY crds crds
COPY src src
COPY docs/causes docs/causes
COPY docs/lint-findings.md docs/
# What `nodewhy version` calls the commit.
ARG NODEWHY_COMMIT
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --release --locked && cp target/release/nodewhy /nodewhy

FROM ${BASE}
COPY --from=build /nodewhy /nodewhy
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/nodewhy"]
CMD ["run"]
