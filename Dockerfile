# trueload in a small image, an estimated 58 MB:
#
#     docker build -t trueload .
#     docker run --rm --network host trueload http http://127.0.0.1:8080/
#
# The engine of the wheel is static, so that a wheel made on Debian runs on Alpine.

FROM rust:1-slim-bookworm AS wheel
RUN apt-get update && apt-get install --yes --no-install-recommends python3-pip python3-venv
COPY . /source
RUN CARGO_PROFILE_RELEASE_STRIP=symbols pip wheel --no-deps --wheel-dir /wheel /source

FROM alpine:3.23 AS packages
RUN apk add --no-cache py3-pip
COPY --from=wheel /wheel /wheel
# Of pygments, which rich needs, the half that knows languages is never imported.
RUN python3 -m venv --without-pip /opt/trueload \
    && pip --python /opt/trueload/bin/python install --no-cache-dir --no-compile \
        --only-binary :all: /wheel/*.whl \
    && rm -r /opt/trueload/lib/python3*/site-packages/pygments/lexers

FROM alpine:3.23
# Without bytecode, which is half of Python's size, and without what nothing here imports.
RUN apk add --no-cache '!pyc' python3 \
    && cd /usr/lib/python3.* && rm -rf ensurepip idlelib lib2to3 pydoc_data
COPY --from=packages /opt/trueload /opt/trueload
ENV PATH=/opt/trueload/bin:$PATH
ENTRYPOINT ["trueload"]
