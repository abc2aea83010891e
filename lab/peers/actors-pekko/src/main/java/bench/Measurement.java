package bench;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** The clocks, and what they say as JSON. */
final class Measurement {
  private static final long NANOSECONDS = 1_000_000;
  /** The compiler needs longer than other programs do, which warm up for half of the time. */
  private static final double WARM_UP = 1.5;
  /** In an interpreter so few are done in that time that nothing of them is compiled. */
  private static final long WARM_UP_OPERATIONS = 50_000;

  private final long time;

  Measurement(long milliseconds) {
    time = milliseconds * NANOSECONDS;
  }

  /** Something that is repeated. */
  interface Batch {
    void run() throws Exception;
  }

  long time() {
    return time;
  }

  long warmUp() {
    return (long) (time * WARM_UP);
  }

  String batches(long operations, Batch batch) throws Exception {
    for (long warm = 0; warm < WARM_UP_OPERATIONS; ) {
      warm += operations * repeat(warmUp(), batch);
    }
    Clock clock = new Clock();
    long all = operations * repeat(time, batch);
    return clock.measured(all, clock.elapsed(), null);
  }

  private static long repeat(long time, Batch batch) throws Exception {
    long start = System.nanoTime();
    long count = 0;
    while (System.nanoTime() - start < time) {
      batch.run();
      count++;
    }
    return count;
  }

  /** Wall clock, and the kernel's accounts of all threads of this process. */
  static final class Clock {
    private final long[] before = accounts();
    private final long start = System.nanoTime();

    long elapsed() {
      return System.nanoTime() - start;
    }

    /** Divides the nanoseconds by the operations. */
    String measured(long operations, double nanoseconds, Double bytes) {
      long[] after = accounts();
      double ran = after[0] - before[0];
      double waited = after[1] - before[1];
      return String.format(
          Locale.ROOT,
          "{\"operations\": %d, \"operations_with_warm_up\": %d, \"nanoseconds\": %f,"
              + " \"cpu_nanoseconds\": %f, \"waited\": %f, \"bytes\": %s}",
          operations,
          operations,
          nanoseconds / operations,
          ran / operations,
          waited / ran,
          bytes == null ? "null" : String.format(Locale.ROOT, "%f", bytes));
    }

    private static long[] accounts() {
      long[] sums = new long[2];
      try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
        for (Path thread : threads) {
          String[] fields;
          try {
            fields = Files.readString(thread.resolve("schedstat")).split(" ");
          } catch (IOException ended) {
            continue; // The JVM ends threads of its own as it likes.
          }
          sums[0] += Long.parseLong(fields[0]);
          sums[1] += Long.parseLong(fields[1]);
        }
        return sums;
      } catch (IOException error) {
        throw new IllegalStateException("/proc/self/task", error);
      }
    }
  }
}
