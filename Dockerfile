# The server as an image: docker build -t redrive .
FROM python:3.11-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/redrive \
 && /opt/redrive/bin/pip install --no-cache-dir --no-compile --constraint constraints.txt '.[functions,otlp,sam]'

FROM python:3.11-slim-bookworm
# 10001 is nobody on the nodes of a cluster, so that a process that gets out of its container owns nothing there.
RUN groupadd --gid 10001 redrive \
 && useradd --uid 10001 --gid redrive --shell /usr/sbin/nologin --create-home --home-dir /var/lib/redrive redrive
COPY --from=build /opt/redrive /opt/redrive
ENV PATH=/opt/redrive/bin:$PATH \
    REDRIVE_HOST=0.0.0.0 \
    REDRIVE_AUTH=required \
    REDRIVE_LOG_FORMAT=json
USER 10001:10001
WORKDIR /var/lib/redrive
VOLUME /var/lib/redrive
EXPOSE 4566
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:4566/_redrive/health', timeout=2)"]
ENTRYPOINT ["redrive"]
CMD ["serve"]
