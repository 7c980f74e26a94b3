FROM oven/bun:1.4.5 AS build
WORKDIR /build
COPY package.json bun.lock bunfig.toml tsconfig.json ./
RUN bun install --frozen-lockfile --production --ignore-scripts
COPY migrations migrations
COPY src src
RUN bun run build

# The binary carries its runtime and root certificates: it needs glibc and nothing else.
FROM debian:12.12-slim
RUN useradd --system --user-group --uid 10001 --no-create-home --home-dir /data holdfast \
  && install -d -o holdfast -g holdfast -m 0700 /data
COPY --from=build /build/dist/holdfast /usr/local/bin/holdfast
USER holdfast
WORKDIR /data
VOLUME /data
ENV HOLDFAST_DATA=/data HOLDFAST_HOST=0.0.0.0 HOLDFAST_PORT=8080
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["holdfast", "health"]
ENTRYPOINT ["holdfast"]
CMD ["serve"]
