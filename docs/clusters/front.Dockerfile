# The front in a container, for pods-job.yaml. From a checkout of trueload:
#
#     docker build -t trueload .
#     docker build -t registry.example.org/trueload-front -f docs/clusters/front.Dockerfile .
#     docker push registry.example.org/trueload-front

FROM trueload
RUN apk add --no-cache kubectl
