# Flags of `greenroom serve` that plackup -s Greenroom passes on, with what they take; a switch takes nothing.
# Made from their definition by `make pages`.
package Plack::Handler::Greenroom::Flags;

use strict;
use warnings;

our %VALUE = (
    'address-connections-max'   => 'NUMBER',
    'address-requests-burst'    => 'NUMBER',
    'address-requests-rate-max' => 'NUMBER',
    'backlog'                   => 'NUMBER',
    'body-bytes-max'            => 'SIZE',
    'body-grace'                => 'TIME',
    'body-memory-max'           => 'SIZE',
    'body-rate-min'             => 'SIZE',
    'connections-max'           => 'NUMBER',
    'drain-deadline'            => 'TIME',
    'drain-grace'               => 'TIME',
    'error-log'                 => 'FILE',
    'fields-max'                => 'NUMBER',
    'forwarded-header'          => 'NAME',
    'head-bytes-max'            => 'SIZE',
    'head-timeout'              => 'TIME',
    'keep-alive-timeout'        => 'TIME',
    'log-format'                => 'FORMAT',
    'log-level'                 => 'LEVEL',
    'loop-lag-max'              => 'TIME',
    'loop-lag-standing'         => 'TIME',
    'loops'                     => 'NUMBER',
    'max-requests'              => 'NUMBER',
    'max-rss'                   => 'SIZE',
    'memory-max'                => 'SIZE',
    'output-bytes-max'          => 'SIZE',
    'pid'                       => 'FILE',
    'proxy-protocol'            => '',
    'response-rate-min'         => 'SIZE',
    'status-listen'             => 'ADDRESS',
    'streams-max'               => 'NUMBER',
    'target-bytes-max'          => 'SIZE',
    'timeout'                   => 'TIME',
    'trusted-proxy'             => 'NETWORK',
    'uploads-bytes-max'         => 'SIZE',
    'worker-concurrency'        => 'NUMBER',
    'worker-queue-max'          => 'NUMBER',
    'worker-queue-wait-max'     => 'TIME',
    'workers'                   => 'NUMBER',
    'write-timeout'             => 'TIME',
);

1;
