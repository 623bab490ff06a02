# SPDX-License-Identifier: MIT
"""Parts of a small Nova, each a process of its own: what stands before nova-scheduler, and what it needs.

    nova_pair.py manage CONF ARGUMENT...            nova-manage itself
    nova_pair.py hosts CONF PLACEMENT_URL HOSTS     records of compute hosts, in the databases and in placement
    nova_pair.py placement FOLDER PORT_FILE         placement itself, on SQLite
    nova_pair.py scheduler CONF                     nova-scheduler itself
    nova_pair.py api CONF PORT_FILE                 a WSGI service behind OSProfiler's middleware, which asks the scheduler for a host

The last two record OSProfiler's points as spans of greenprof, too.
"""
import json
import os
import signal
import sys
import urllib.request

role, arguments = sys.argv[1], sys.argv[2:]
if role != "placement":
    import nova.monkey_patch  # noqa: as nova's commands do, first of all


def tell(path, port):
    with open(path + ".new", "w") as file:
        file.write(str(port))
    os.rename(path + ".new", path)


def placement(folder, port_file):
    from wsgiref import simple_server
    os.environ.update(OS_PLACEMENT_DATABASE__CONNECTION=f"sqlite:///{folder}/placement.sqlite",
                      OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP="True", OS_API__AUTH_STRATEGY="noauth2")
    sys.argv[1:] = []
    from placement import wsgi
    server = simple_server.make_server("127.0.0.1", 0, wsgi.init_application())
    tell(port_file, server.server_port)
    server.serve_forever()


def configure(path):
    from nova import config, objects
    config.parse_args(["nova", "--config-file", path])
    objects.register_all()


def ask_placement(url, method, path, body):
    headers = {"X-Auth-Token": "admin", "Content-Type": "application/json", "OpenStack-API-Version": "placement 1.29"}
    urllib.request.urlopen(urllib.request.Request(url + path, json.dumps(body).encode(), headers, method=method), timeout=60).close()


def hosts(conf, url, count):
    configure(conf)
    from nova import context, objects
    from oslo_utils import timeutils
    admin = context.get_admin_context()
    cell = next(cell for cell in objects.CellMappingList.get_all(admin) if not cell.is_cell0())
    with context.target_cell(admin, cell) as celled:
        for number in range(int(count)):
            name = f"host{number}"
            service = objects.Service(celled, host=name, binary="nova-compute", topic="compute", disabled=False, report_count=1,
                                      last_seen_up=timeutils.utcnow())
            service.create()
            node = objects.ComputeNode(
                celled, host=name, hypervisor_hostname=name, service_id=service.id, uuid=f"00000000-0000-4000-8000-{number:012x}",
                vcpus=16, vcpus_used=0, memory_mb=65536, memory_mb_used=0, free_ram_mb=65536, local_gb=1000, local_gb_used=0,
                free_disk_gb=1000, disk_available_least=1000, current_workload=0, running_vms=0, hypervisor_type="fake",
                hypervisor_version=1, cpu_info="{}", host_ip="127.0.0.1", supported_hv_specs=[], stats={},
                cpu_allocation_ratio=16.0, ram_allocation_ratio=1.5, disk_allocation_ratio=1.0, mapped=1)
            node.create()
            objects.HostMapping(admin, host=name, cell_mapping=cell).create()
            ask_placement(url, "POST", "/resource_providers", {"name": name, "uuid": node.uuid})
            ask_placement(url, "PUT", f"/resource_providers/{node.uuid}/inventories", {
                "resource_provider_generation": 0,
                "inventories": {"VCPU": {"total": 16}, "MEMORY_MB": {"total": 65536}, "DISK_GB": {"total": 1000}}})


def manage(conf, *arguments):
    sys.argv = ["nova-manage", "--config-file", conf, *arguments]
    from nova.cmd import manage as command
    sys.exit(command.main())


def instrument():
    import greenprof.libraries
    greenprof.libraries.instrument("osprofiler")


def scheduler(conf):
    instrument()
    sys.argv = ["nova-scheduler", "--config-file", conf]
    from nova.cmd import scheduler as command
    command.main()


def api(conf, port_file):
    import eventlet.wsgi
    import osprofiler.web
    from nova import context, objects, rpc, service
    from nova.scheduler import rpcapi
    from oslo_utils import uuidutils
    configure(conf)
    instrument()
    service.setup_profiler("nova-api", "api-host")
    rpc.init(service.CONF)
    flavor = objects.Flavor(id=1, flavorid="1", name="small", vcpus=1, memory_mb=512, root_gb=1, ephemeral_gb=0, swap=0,
                            extra_specs={}, is_public=True, disabled=False, rxtx_factor=1.0, vcpu_weight=0, description=None,
                            created_at=None, updated_at=None, deleted_at=None, deleted=False, projects=[])

    def application(environ, start_response):
        admin, server = context.RequestContext("user", "project", is_admin=True), uuidutils.generate_uuid()
        spec = objects.RequestSpec.from_components(
            admin, server, objects.ImageMeta(properties=objects.ImageMetaProps()), flavor, None,
            objects.InstancePCIRequests(requests=[], instance_uuid=server), {}, None, None)
        spec.requested_resources, spec.request_level_params = [], objects.RequestLevelParams()
        chosen = rpcapi.SchedulerAPI().select_destinations(admin, spec, [server], return_objects=True)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [chosen[0][0].service_host.encode()]

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    listening = eventlet.listen(("127.0.0.1", 0))
    tell(port_file, listening.getsockname()[1])
    eventlet.wsgi.server(listening, osprofiler.web.WsgiMiddleware(application, hmac_keys="SECRET_KEY", enabled=True), log_output=False)


globals()[role](*arguments)
