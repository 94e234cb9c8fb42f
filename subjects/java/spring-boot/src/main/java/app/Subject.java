package app;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** HTTP server on Spring Boot: {@code Subject --server.address=HOST --server.port=PORT}. */
@SpringBootApplication
public class Subject {
    public static void main(String[] arguments) {
        SpringApplication.run(Subject.class, arguments);
    }
}
