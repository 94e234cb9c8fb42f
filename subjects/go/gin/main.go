// HTTP server on Gin in release mode, with its recovery middleware and without its logger.
package main

import (
	"flag"
	"log"
	"net/http"

	"github.com/gin-gonic/gin"
)

// Brings the plain response to 192 bytes, see subjects/README.md.
const pad = "....................................................."

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address and port")
	flag.Parse()

	gin.SetMode(gin.ReleaseMode)
	router := gin.New()
	router.Use(gin.Recovery())
	router.GET("/", func(c *gin.Context) {
		c.Header("X-Pad", pad)
		c.String(http.StatusOK, "Hello, World!")
	})
	router.GET("/json", func(c *gin.Context) {
		c.JSON(http.StatusOK, gin.H{"message": "Hello, World!"})
	})
	log.Fatal(router.Run(*listen))
}
