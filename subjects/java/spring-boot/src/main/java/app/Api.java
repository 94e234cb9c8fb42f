package app;

import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The routes. */
@RestController
class Api {
    /** Brings the plain response to 192 bytes, see subjects/README.md. */
    private static final String PAD = "......................................................";

    record Greeting(String message) {}

    @GetMapping("/")
    ResponseEntity<String> plain() {
        return ResponseEntity.ok()
                .contentType(MediaType.TEXT_PLAIN)
                .header("X-Pad", PAD)
                .body("Hello, World!");
    }

    @GetMapping("/json")
    Greeting json() {
        return new Greeting("Hello, World!");
    }
}
