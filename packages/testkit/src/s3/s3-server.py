"""
Serves S3 from OpenStack Swift in one process, for tests: `s3-server.py <folder> <access key> <secret>`.

Prints the port once it can be used. Databases lie in the folder, objects in memory. Listens on 127.0.0.1 only.
"""
import array
import logging
import os
import sys

import eventlet
import eventlet.event
import eventlet.wsgi

eventlet.patcher.monkey_patch()

folder, access_key, secret = sys.argv[1:4]

# Read as soon as Swift is imported.
with open(os.path.join(folder, 'swift.conf'), 'w') as conf:
    conf.write('[swift-hash]\nswift_hash_path_suffix = tests\n')
os.environ['SWIFT_CONF_DIR'] = folder

from swift.common import utils

utils.SWIFT_CONF_FILE = os.path.join(folder, 'swift.conf')
utils.HASH_PATH_SUFFIX = b'tests'
utils.HASH_PATH_PREFIX = b''


class StderrHandler(logging.StreamHandler):
    """Stands in for the system's log, which tests must not fill."""

    LOG_LOCAL0 = 0

    def __init__(self, *_args, **_kwargs):
        super().__init__(sys.stderr)


for place in (utils, getattr(utils, 'logs', utils)):
    place.ThreadSafeSysLogHandler = StderrHandler

from paste.deploy import loadapp
from swift.account import server as account_server
from swift.common.ring import RingData
from swift.container import server as container_server
from swift.obj import mem_server


class Memcache:
    """Values that the proxy stores in memcached."""

    def __init__(self):
        self.values = {}

    def get(self, key, *_args, **_kwargs):
        return self.values.get(key)

    def set(self, key, value, *_args, **_kwargs):
        self.values[key] = value

    def incr(self, key, delta=1, *_args, **_kwargs):
        self.values[key] = self.values.get(key, 0) + delta
        return self.values[key]

    def decr(self, key, delta=1, *args, **kwargs):
        return self.incr(key, -delta, *args, **kwargs)

    def delete(self, key, *_args, **_kwargs):
        self.values.pop(key, None)


def with_cache(app):
    cache = Memcache()

    def call(env, start_response):
        env['swift.cache'] = cache
        return app(env, start_response)

    return call


def listen():
    return eventlet.listen(('127.0.0.1', 0), backlog=128)


def serve(sock, app):
    eventlet.spawn(eventlet.wsgi.server, sock, app, log=logging.getLogger('requests'), log_output=False)


def write_ring(kind, port):
    device = {'id': 0, 'region': 1, 'zone': 1, 'device': 'd', 'weight': 1.0, 'ip': '127.0.0.1', 'port': port,
              'replication_ip': '127.0.0.1', 'replication_port': port, 'meta': ''}
    RingData([array.array('H', [0])], [device], 32).save(os.path.join(folder, kind + '.ring.gz'))


PROXY = """
[DEFAULT]
swift_dir = {folder}
log_level = ERROR
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true
node_timeout = 30
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_{account}_{user} = {secret} .admin
[filter:slo]
use = egg:swift#slo
rate_limit_after_segment = 1000
"""

devices = os.path.join(folder, 'devices')
os.makedirs(os.path.join(devices, 'd'))
storage = {'devices': devices, 'swift_dir': folder, 'mount_check': 'false', 'log_level': 'ERROR'}
servers = {
    'account': account_server.AccountController,
    'container': container_server.ContainerController,
    'object': mem_server.ObjectController,
}
sockets = {kind: listen() for kind in servers}
for kind, sock in sockets.items():
    write_ring(kind, sock.getsockname()[1])
for kind, controller in servers.items():
    serve(sockets[kind], controller(storage))

account, user = access_key.split(':')
path = os.path.join(folder, 'proxy.conf')
with open(path, 'w') as conf:
    conf.write(PROXY.format(folder=folder, account=account, user=user, secret=secret))
front = listen()
serve(front, with_cache(loadapp('config:' + path)))
print('listening on', front.getsockname()[1], flush=True)
eventlet.event.Event().wait()
