/*
 * The part of HTTP/1 that a raw event loop needs: answers that are composed once, and a parser that finds where a
 * request ends.
 *
 * The parser reads only what it needs for this: the version, Connection and Content-Length. It is no general parser,
 * and the router knows only two paths. This file must not use sockets. It lies in subjects/shared, and is copied into
 * the build of each subject whose manifest names its folder.
 */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

enum {
    HEAD_BYTES_MAX = 8 * 1024,     /* a longer request head is refused with 431 */
    RESPONSE_BYTES_MAX = 512,      /* the longest answer below */
    PLAIN_RESPONSE_BYTES = 192,    /* like every other subject's, see subjects/README.md */
};

enum route { PLAIN, PERF, NOT_FOUND, BAD_METHOD, BAD_REQUEST, HEAD_TOO_LARGE, NOT_IMPLEMENTED, ROUTES };
enum persistence { STAY, STAY_1_0, CLOSE, PERSISTENCES };   /* with HTTP/1.0, keep-alive must be stated */

struct response {
    char bytes[RESPONSE_BYTES_MAX];
    size_t len;
};

struct request {
    size_t head_len;        /* 0: the head is not complete yet */
    uint64_t body_len;
    bool has_body_len;
    enum route route;
    enum persistence persistence;
};

static struct response responses[ROUTES][PERSISTENCES];
static const char *server_name;

/* ---- responses, made once ---- */

static void compose(enum route route, const char *status, const char *type, const char *body, size_t pad_to)
{
    static const char *const lines[PERSISTENCES] = {"", "Connection: keep-alive\r\n", "Connection: close\r\n"};

    for (int i = 0; i < PERSISTENCES; i++) {
        struct response *r = &responses[route][i];
        char head[RESPONSE_BYTES_MAX];
        int len = snprintf(head, sizeof head,
                           "HTTP/1.1 %s\r\nServer: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s",
                           status, server_name, type, strlen(body), lines[i]);
        size_t bare = (size_t)len + 2 + strlen(body);
        size_t pad_line = strlen("X-Pad: \r\n");
        if (pad_to > bare + pad_line) {
            char pad[RESPONSE_BYTES_MAX] = "";
            memset(pad, '.', pad_to - bare - pad_line);
            len += snprintf(head + len, sizeof head - (size_t)len, "X-Pad: %s\r\n", pad);
        }
        r->len = (size_t)snprintf(r->bytes, sizeof r->bytes, "%s\r\n%s", head, body);
    }
}

static void compose_all(const char *server)
{
    server_name = server;
    compose(PLAIN, "200 OK", "text/plain", "Hello, World!", PLAIN_RESPONSE_BYTES);
    compose(PERF, "200 OK", "application/json",
            "{\"path\":\"/perf\",\"status\":\"ok\",\"message\":\"Hello, World!\",\"numbers\":[1,2,3,5,8,13,21]}", 0);
    compose(NOT_FOUND, "404 Not Found", "text/plain", "not found", 0);
    compose(BAD_METHOD, "405 Method Not Allowed\r\nAllow: GET", "text/plain", "", 0);
    compose(BAD_REQUEST, "400 Bad Request", "text/plain", "", 0);
    compose(HEAD_TOO_LARGE, "431 Request Header Fields Too Large", "text/plain", "", 0);
    compose(NOT_IMPLEMENTED, "501 Not Implemented", "text/plain", "", 0);
}

/* ---- where one request ends ---- */

static bool starts(const char *p, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);
    return len >= n && memcmp(p, prefix, n) == 0;
}

static bool ends(const char *p, size_t len, const char *suffix)
{
    size_t n = strlen(suffix);
    return len >= n && memcmp(p + len - n, suffix, n) == 0;
}

/* Returns the value of a header line if the line has this name, else NULL. */
static const char *header(const char *line, size_t len, const char *name, size_t *value_len)
{
    size_t n = strlen(name);

    if (len < n || strncasecmp(line, name, n) != 0)
        return NULL;
    while (n < len && (line[n] == ' ' || line[n] == '\t'))
        n++;
    while (len > n && (line[len - 1] == ' ' || line[len - 1] == '\t'))
        len--;
    *value_len = len - n;
    return line + n;
}

static bool has_token(const char *list, size_t len, const char *token)
{
    size_t n = strlen(token);

    for (size_t i = 0; i + n <= len; i++) {
        bool begins = i == 0 || strchr(", \t", list[i - 1]);
        bool stops = i + n == len || strchr(", \t", list[i + n]);
        if (begins && stops && strncasecmp(list + i, token, n) == 0)
            return true;
    }
    return false;
}

static void refuse(struct request *r, enum route why)
{
    r->route = why;
    r->persistence = CLOSE;
    r->body_len = 0;
}

static void read_request_line(struct request *r, const char *line, size_t len)
{
    if (ends(line, len, " HTTP/1.1"))
        r->persistence = STAY;
    else if (ends(line, len, " HTTP/1.0"))
        r->persistence = CLOSE;
    else {
        refuse(r, BAD_REQUEST);
        return;
    }
    if (starts(line, len, "GET / "))
        r->route = PLAIN;
    else if (starts(line, len, "GET /perf "))
        r->route = PERF;
    else if (starts(line, len, "GET "))
        r->route = NOT_FOUND;
    else
        r->route = BAD_METHOD;
}

/* Returns false if the length is invalid, so that the end of the request is unknown. */
static bool read_body_len(struct request *r, const char *digits, size_t len)
{
    if (r->has_body_len || len == 0 || len > 18)
        return false;
    r->has_body_len = true;
    for (size_t i = 0; i < len; i++) {
        if (digits[i] < '0' || digits[i] > '9')
            return false;
        r->body_len = r->body_len * 10 + (uint64_t)(digits[i] - '0');
    }
    return true;
}

static void read_header(struct request *r, const char *line, size_t len, bool http_1_0)
{
    const char *value;
    size_t n;
    char first = (char)(line[0] | 0x20);

    /* All header names that we need begin with `c` or `t`. Other lines are skipped quickly. */
    if (first == 'c' && (value = header(line, len, "connection:", &n))) {
        if (has_token(value, n, "close"))
            r->persistence = CLOSE;
        else if (http_1_0 && has_token(value, n, "keep-alive"))
            r->persistence = STAY_1_0;
    } else if (first == 'c' && (value = header(line, len, "content-length:", &n))) {
        if (!read_body_len(r, value, n))
            refuse(r, BAD_REQUEST);
    } else if (first == 't' && header(line, len, "transfer-encoding:", &n)) {
        refuse(r, NOT_IMPLEMENTED);
    }
}

/* Parses one request head at `p`. `head_len` is 0 if the head is not complete yet. */
static struct request parse(const char *p, size_t len)
{
    struct request r = {0};
    const char *line = p, *end = p + len, *newline;
    bool http_1_0 = false, refused = false;

    while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
        size_t line_len = (size_t)(newline - line);
        if (line_len && line[line_len - 1] == '\r')
            line_len--;
        if (line == p && line_len == 0)
            p = newline + 1;                    /* RFC 9112 2.2: an empty line before a request is ignored */
        else if (line == p) {
            read_request_line(&r, line, line_len);
            http_1_0 = r.persistence == CLOSE;
        } else if (line_len == 0) {
            r.head_len = (size_t)(newline + 1 - (end - len));
            return r;
        } else if (!refused)
            read_header(&r, line, line_len, http_1_0);
        refused = r.route >= BAD_REQUEST;
        line = newline + 1;
    }
    return r;
}

#endif
