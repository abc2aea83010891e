function FindProxyForURL(url, host) { return "PROXY 192.168.2.1:3128; DIRECT"; }
