/* The two programs that AnyEvent's manual measures loops with, in C over libev.
 *
 *   libev watchers PAIRS
 *   libev servers PAIRS ACTIVE SECONDS
 *
 * Prints one line of JSON: microseconds and bytes each. */
#include <ev.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct {
  ev_io io;
  ev_timer timer;
  int other; /* a server's end to write to */
} pair;

static pair *pairs;
static long count, todo, handled;

static double now(void) {
  struct timeval time;
  gettimeofday(&time, NULL);
  return time.tv_sec + time.tv_usec / 1e6;
}

static double rss(void) {
  long total, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) exit(1);
  fclose(file);
  return resident * 4096.0;
}

static void pair_of_sockets(int ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
    perror("socketpair");
    exit(1);
  }
}

static void done(EV_P) {
  if (!--todo) ev_break(EV_A_ EVBREAK_ALL);
}

static void on_io(EV_P_ ev_io *io, int events) { (void)io, (void)events, done(EV_A); }

static void on_timer(EV_P_ ev_timer *timer, int events) { (void)timer, (void)events, done(EV_A); }

static void watchers(EV_P) {
  int ends[2];
  pair_of_sockets(ends);
  double bytes = rss(), time = now();
  pairs = malloc(count * sizeof *pairs);
  for (pair *p = pairs; p < pairs + count; ++p) {
    ev_io_init(&p->io, on_io, ends[0], EV_WRITE);
    ev_io_start(EV_A_ &p->io);
    ev_timer_init(&p->timer, on_timer, 0, 0);
    ev_timer_start(EV_A_ &p->timer);
  }
  double created = now() - time;
  bytes = rss() - bytes;
  todo = 2 * count;
  time = now();
  ev_run(EV_A_ 0);
  double invoked = now() - time;
  time = now();
  /* The last first, as Perl frees its arrays: a descriptor's watchers are a list. */
  for (pair *p = pairs + count; p-- > pairs;) {
    ev_io_stop(EV_A_ &p->io);
    ev_timer_stop(EV_A_ &p->timer);
  }
  todo = 1;
  ev_timer_start(EV_A_ &pairs->timer);
  ev_run(EV_A_ 0);
  double each = 2.0 * count, us = 1e6 / each;
  printf("{\"watchers\": %ld, \"bytes\": %.3f, \"create_us\": %.3f, \"invoke_us\": %.3f, "
         "\"destroy_us\": %.3f}\n",
         2 * count, bytes / each, created * us, invoked * us, (now() - time) * us);
}

static void on_late(EV_P_ ev_timer *timer, int events) {
  (void)loop, (void)timer, (void)events;
  abort();
}

static void on_byte(EV_P_ ev_io *io, int events) {
  pair *self = (pair *)io; /* its first member */
  char byte;
  (void)events;
  ++handled;
  if (read(io->fd, &byte, 1) != 1) abort();
  if (write(pairs[random() % count].other, &byte, 1) != 1) abort();
  ev_timer_again(EV_A_ &self->timer);
}

static void servers(EV_P_ int active, double seconds) {
  ev_timer end;
  double time = now();
  pairs = malloc(count * sizeof *pairs);
  for (pair *p = pairs; p < pairs + count; ++p) {
    int ends[2];
    pair_of_sockets(ends);
    p->other = ends[1];
    ev_io_init(&p->io, on_byte, ends[0], EV_READ);
    ev_io_start(EV_A_ &p->io);
    ev_timer_init(&p->timer, on_late, 0, 3600);
    ev_timer_again(EV_A_ &p->timer);
  }
  double created = now() - time;
  while (active--)
    if (write(pairs[random() % count].other, "x", 1) != 1) abort();
  todo = 1;
  ev_now_update(EV_A);
  ev_timer_init(&end, on_timer, seconds, 0);
  ev_timer_start(EV_A_ &end);
  time = now();
  ev_run(EV_A_ 0);
  printf("{\"sockets\": %ld, \"create_us\": %.3f, \"request_us\": %.3f}\n", 2 * count,
         created / count * 1e6, (now() - time) / handled * 1e6);
}

int main(int argc, char **argv) {
  struct ev_loop *loop = EV_DEFAULT;
  if (argc < 3) return 1;
  count = atol(argv[2]);
  if (argc == 5)
    servers(EV_A_ atoi(argv[3]), atof(argv[4]));
  else
    watchers(EV_A);
  return 0;
}
