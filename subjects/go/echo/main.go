// HTTP server on Echo without middleware.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/labstack/echo/v5"
)

// Brings the plain response to 192 bytes, see subjects/README.md.
const pad = "....................................................."

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address and port")
	flag.Parse()

	e := echo.New()
	e.GET("/", func(c *echo.Context) error {
		c.Response().Header().Set("X-Pad", pad)
		return c.String(http.StatusOK, "Hello, World!")
	})
	e.GET("/json", func(c *echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"message": "Hello, World!"})
	})
	// IdleTimeout is set, because ReadTimeout (Echo's default of 30 s) would otherwise also end idle connections.
	server := http.Server{Addr: *listen, Handler: e, ReadTimeout: 30 * time.Second, IdleTimeout: time.Hour}
	log.Fatal(server.ListenAndServe())
}
