# The learner with everything but vLLM: docker build -f deployments/docker/trainer.Dockerfile -t papo-trainer .
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends make git && rm -rf /var/lib/apt/lists/*
WORKDIR /papo
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY flows flows
COPY tasks tasks
COPY schemas schemas
COPY papo papo
COPY deployments deployments
COPY prefect.yaml ./
RUN pip install --no-cache-dir -c constraints.txt -e .
# Runs, models and data live on volumes; servers of the vLLM image must see /papo/runs under the same path.
VOLUME ["/papo/runs", "/papo/models"]
ENTRYPOINT ["papo"]
CMD ["--help"]
