// Go's net/http, reading an answer part by part.
package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

var client = http.Client{Timeout: 20 * time.Second}

func main() {
	log.SetFlags(0)
	base := os.Args[1]
	answer := get(base + "/parts")
	defer answer.Body.Close()
	for number, argument := range os.Args[2:] {
		length, err := strconv.Atoi(argument)
		check(err)
		found := make([]byte, length)
		_, err = io.ReadFull(answer.Body, found)
		check(err)
		if !bytes.Equal(found, bytes.Repeat([]byte{'a' + byte(number)}, length)) {
			log.Fatalf("part %d is another", number)
		}
		get(base + "/next").Body.Close()
	}
	rest, err := io.ReadAll(answer.Body)
	check(err)
	if len(rest) > 0 {
		log.Fatalf("%q behind the last part", rest)
	}
}

func get(url string) *http.Response {
	answer, err := client.Get(url)
	check(err)
	return answer
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
