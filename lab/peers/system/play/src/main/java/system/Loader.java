package system;

import play.Application;
import play.ApplicationLoader;

/** Play starts the application with it. */
public final class Loader implements ApplicationLoader {
  @Override
  public Application load(Context context) {
    return new Components(context).application();
  }
}
