// Go's net/http, reading a response part by part.
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
	response := get(base + "/parts")
	defer response.Body.Close()
	for number, argument := range os.Args[2:] {
		length, err := strconv.Atoi(argument)
		check(err)
		found := make([]byte, length)
		_, err = io.ReadFull(response.Body, found)
		check(err)
		if !bytes.Equal(found, bytes.Repeat([]byte{'a' + byte(number)}, length)) {
			log.Fatalf("part %d is another", number)
		}
		get(base + "/next").Body.Close()
	}
	rest, err := io.ReadAll(response.Body)
	check(err)
	if len(rest) > 0 {
		log.Fatalf("%q behind the last part", rest)
	}
}

func get(url string) *http.Response {
	response, err := client.Get(url)
	check(err)
	return response
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
