"""Django in one file: its settings, a view for each path, and the application for the server.

Of the default middleware it uses only the one that sets Content-Length. The others need a database,
check forms, or add headers to each response.
"""

from __future__ import annotations

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

# Brings the plain response to 192 bytes, see subjects/README.md.
PAD = {"X-Pad": "." * 26}

settings.configure(
    ALLOWED_HOSTS=["*"],
    DEBUG=False,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF=__name__,
)


def plain(request: HttpRequest) -> HttpResponse:
    return HttpResponse("Hello, World!", content_type="text/plain", headers=PAD)


def hello(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"message": "Hello, World!"})


urlpatterns = [path("", plain), path("json", hello)]

app = get_wsgi_application()
