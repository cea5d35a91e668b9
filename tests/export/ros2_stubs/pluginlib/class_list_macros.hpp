// A factory that a test finds by name in the shared library.
#pragma once
#define PLUGINLIB_EXPORT_CLASS(derived, base) \
  extern "C" base *make_plugin();             \
  base *make_plugin() { return new derived(); }
