# ballast as a static binary with nothing beside it but the CA certificates it verifies Prometheus by.
#   docker build -t ballast:dev .
# GO_IMAGE is any image with Go 1.26 or later and CA certificates. BASE_IMAGE may be a distroless static image where a
# scanner wants to see one; the binary needs nothing of it.
ARG GO_IMAGE=golang:1.26
ARG BASE_IMAGE=scratch

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=""
ARG COMMIT=""
ARG TARGETOS
ARG TARGETARCH
RUN CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
    go build -trimpath -ldflags "-s -w -X ballast/cmd/ballast/version.version=${VERSION} -X ballast/cmd/ballast/version.commit=${COMMIT}" -o /out/ballast ./cmd/ballast

FROM ${BASE_IMAGE}
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/ballast /ballast
# The nonroot user of distroless images, by number, so that a kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/ballast"]
