// HTTP server on Fiber with its default settings, in one process.
package main

import (
	"flag"
	"log"

	"github.com/gofiber/fiber/v3"
)

// Brings the plain response to 192 bytes, see subjects/README.md.
const pad = "....................................................."

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address and port")
	flag.Parse()

	app := fiber.New()
	app.Get("/", func(c fiber.Ctx) error {
		c.Set("X-Pad", pad)
		return c.SendString("Hello, World!")
	})
	app.Get("/json", func(c fiber.Ctx) error {
		return c.JSON(fiber.Map{"message": "Hello, World!"})
	})
	log.Fatal(app.Listen(*listen, fiber.ListenConfig{DisableStartupMessage: true}))
}
