"""moto, with what it lacks: access entries, consoles, states of images, instances and routes, IAM for every call, and faults on demand.

python server.py PORT, on loopback. What the tests set goes to /test/..., everything else is AWS.
Every request must be signed as botocore signs it, and be permitted by the policy that was set.
"""

import base64, datetime, hashlib, io, json, os, sys, time
from urllib.parse import parse_qs, unquote

# The policies of AWS's own, which roles are given.
os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.ec2.models.route_tables import Route
from moto.ec2.responses.general import General
from moto.eks.models import eks_backends
from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.iam.models import iam_backends
from moto.kms.models import kms_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.models import ServiceQuotasBackend
from moto.sts.models import sts_backends
from werkzeug.serving import WSGIRequestHandler, run_simple
from werkzeug.wrappers import Request, Response

REGION = "eu-west-1"
KEYS = {"AKIATESTTESTTESTTEST": "secret"}
calls, consoles, entries, faults, blackholes, quotas = [], {}, {}, [], set(), {}
settings = {"policy": None}


def get_service_quota(self, service_code, quota_code):
    # moto has those of VPCs only.
    if service_code != "ec2" or quota_code not in quotas:
        raise NoSuchResource
    return {"ServiceCode": "ec2", "QuotaCode": quota_code, "QuotaName": quota_code, "Value": quotas[quota_code]}


ServiceQuotasBackend.get_service_quota = get_service_quota


def get_console_output(self):
    instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
    text = consoles.get(instance.id, "")
    return ActionResult({"InstanceId": instance.id, "Output": base64.b64encode(text.encode()).decode()})


General.get_console_output = get_console_output
# The snapshots of moto's images are of one size, and none is encrypted.
own_volumes = Ami.block_device_mappings.fget
Ami.block_device_mappings = property(
    lambda ami: [v | {"Ebs": v["Ebs"] | {"VolumeSize": getattr(ami, "gib", 15), "Encrypted": getattr(ami, "encrypted", False)}} for v in own_volumes(ami)]
)
# A route whose target is gone: moto's are always active.
Route.state = property(lambda route: "blackhole" if route.route_table.id in blackholes and not route.local else "active")


def set_image(ec2, id, name, state="available", created="2026-01-15T11:20:00+00:00", gib=15, encrypted=False, ena=True, **more):
    """More is what moto's images have: architecture, boot_mode, root_device_name."""
    some = next(iter(ec2.amis.values()))
    ami = some.__class__(ec2, ami_id=id, source_ami=some, name=name, description=name, creation_date=datetime.datetime.fromisoformat(created), **more)
    ami.state, ami.ena_support, ami.gib, ami.encrypted = state, ena, gib, encrypted
    ami.architecture = more.get("architecture", ami.architecture)
    ec2.amis[id] = ami


def set_instance(ec2, id, state="running", code="", message="", reason="", image=None, profile=None, **place):
    if not any(i.id == id for r in ec2.reservations.values() for i in r.instances):
        reservation = ec2.run_instances(image or next(iter(ec2.amis)), 1, "", [], instance_type="m5.large", is_instance_type_default=False, **place)
        reservation.instances[0].id = id
    instance = next(i for r in ec2.reservations.values() for i in r.instances if i.id == id)
    if profile:
        instance.iam_instance_profile = {"Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/{profile}", "Id": "AIPAEXAMPLE"}
    codes = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
    instance._state.name, instance._state.code = state, codes[state]
    instance.state_reason.code, instance.state_reason.message, instance._reason = code, message, reason


def lead_out(vpc):
    """The default VPC of an account has an internet gateway, and its main table leads there."""
    ec2 = client("ec2")
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    main = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"][0]["RouteTableId"]
    ec2.create_route(RouteTableId=main, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)


def client(service):
    # Asks this very server, so that moto checks what is built.
    return boto3.client(service, REGION, endpoint_url=f"http://127.0.0.1:{sys.argv[1]}", aws_access_key_id=next(iter(KEYS)), aws_secret_access_key="secret")


def set_network(instance, witness=None, route="nat", nat_route=True, address=False, endpoints=(), private_dns=True, gateway_endpoint=True,
                policy=None, dns_support=True, dns_host_names=True, name_servers=None, admits="node", permits=True, denial=None,
                public=True, private=True, cidrs=("0.0.0.0/0",)):
    """A VPC with the instance, the cluster shop, and three subnets; what is not said is as it should be. Gives the ids."""
    ec2 = client("ec2")
    ids = {"vpc": ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]}
    for name, value in (("EnableDnsSupport", dns_support), ("EnableDnsHostnames", dns_host_names)):
        ec2.modify_vpc_attribute(VpcId=ids["vpc"], **{name: {"Value": value}})
    if name_servers:
        options = ec2.create_dhcp_options(DhcpConfigurations=[{"Key": "domain-name-servers", "Values": name_servers}])["DhcpOptions"]["DhcpOptionsId"]
        ec2.associate_dhcp_options(DhcpOptionsId=options, VpcId=ids["vpc"])
    for n, name in enumerate(("node", "control", "public"), 1):
        ids[name] = ec2.create_subnet(VpcId=ids["vpc"], CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=REGION + "a")["Subnet"]["SubnetId"]
    igw = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=igw, VpcId=ids["vpc"])
    for name in ("node", "public"):
        table = ids[name + "_table"] = ec2.create_route_table(VpcId=ids["vpc"])["RouteTable"]["RouteTableId"]
        ec2.associate_route_table(RouteTableId=table, SubnetId=ids[name])
    if nat_route:
        ec2.create_route(RouteTableId=ids["public_table"], DestinationCidrBlock="0.0.0.0/0", GatewayId=igw)
    eip = ec2.allocate_address(Domain="vpc")
    ids["eip"] = eip["PublicIp"]
    ids["nat"] = ec2.create_nat_gateway(SubnetId=ids["public"], AllocationId=eip["AllocationId"])["NatGateway"]["NatGatewayId"]
    targets = {"nat": {"NatGatewayId": ids["nat"]}, "blackhole": {"NatGatewayId": ids["nat"]}, "igw": {"GatewayId": igw}}
    if route == "tgw":
        targets["tgw"] = {"TransitGatewayId": ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]}
    if route in targets:
        ec2.create_route(RouteTableId=ids["node_table"], DestinationCidrBlock="0.0.0.0/0", **targets[route])
    if route == "blackhole":
        blackholes.add(ids["node_table"])
    for name in ("node_group", "cluster_group", "other_group"):
        ids[name] = ec2.create_security_group(GroupName=name, Description=name, VpcId=ids["vpc"])["GroupId"]
    if admits:
        https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "UserIdGroupPairs": [{"GroupId": ids[admits + "_group"]}]}
        ec2.authorize_security_group_ingress(GroupId=ids["cluster_group"], IpPermissions=[https])
    if not permits:
        ec2.revoke_security_group_egress(GroupId=ids["node_group"], IpPermissions=[{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}])
    ids["acl"] = ec2.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [ids["vpc"]]}])["NetworkAcls"][0]["NetworkAclId"]
    if denial:
        entry = {"RuleNumber": 50, "RuleAction": "deny", "Protocol": "6", "CidrBlock": "0.0.0.0/0"} | denial
        ec2.create_network_acl_entry(NetworkAclId=ids["acl"], **entry)
    for service in endpoints:
        of_service = {"VpcId": ids["vpc"], "ServiceName": f"com.amazonaws.{REGION}.{service}"} | ({"PolicyDocument": policy} if policy else {})
        if service == "s3":
            tables = [ids["node_table" if gateway_endpoint else "public_table"]]
            made = ec2.create_vpc_endpoint(VpcEndpointType="Gateway", RouteTableIds=tables, **of_service)
        else:
            made = ec2.create_vpc_endpoint(VpcEndpointType="Interface", SubnetIds=[ids["control"]], SecurityGroupIds=[ids["cluster_group"]], PrivateDnsEnabled=private_dns, **of_service)
        ids[service] = made["VpcEndpoint"]["VpcEndpointId"]
    for id in filter(None, (instance, witness)):
        set_instance(ec2_backends[ACCOUNT][REGION], id, subnet_id=ids["node"], security_group_ids=[ids["node_group"]], associate_public_ip=address)
    eks = eks_backends[ACCOUNT][REGION]
    set_cluster("shop", "CONFIG_MAP")
    eks.clusters["shop"].resources_vpc_config = {
        "vpcId": ids["vpc"], "subnetIds": [ids["control"]], "securityGroupIds": [], "clusterSecurityGroupId": ids["cluster_group"],
        "endpointPublicAccess": public, "endpointPrivateAccess": private, "publicAccessCidrs": [cidr.replace("EIP", ids["eip"]) for cidr in cidrs],
    }
    calls.clear()
    return ids


def set_cluster(name, mode):
    eks = eks_backends[ACCOUNT][REGION]
    if name not in eks.clusters:
        eks.create_cluster(name, f"arn:aws:iam::{ACCOUNT}:role/cluster", {})
    eks.clusters[name].access_config = {"authenticationMode": mode}


def set_profile(name, role=None, created="2025-01-01T09:00:00+00:00", trusts="ec2.amazonaws.com", attached=(), inline=()):
    """An instance profile, empty without a role. The role trusts this service, and has these policies."""
    iam = client("iam")
    if name not in [p["InstanceProfileName"] for p in iam.list_instance_profiles()["InstanceProfiles"]]:
        iam.create_instance_profile(InstanceProfileName=name)
    if role:
        statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": trusts}}
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
        backend = iam_backends[ACCOUNT]["aws"]
        backend.get_role(role).create_date = datetime.datetime.fromisoformat(created)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
    for arn in attached:
        iam.attach_role_policy(RoleName=role, PolicyArn=arn)
    for policy in inline:
        anything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}
        iam.put_role_policy(RoleName=role, PolicyName=policy, PolicyDocument=json.dumps(anything))
    calls.clear()


def set_key(state="Enabled", named=None, granted=()):
    """A key in this state, whose policy names these, as one does for volumes. Gives its ARN."""
    kms = client("kms")
    statement = {"Effect": "Allow", "Principal": {"AWS": list(named or [])}, "Action": "kms:*", "Resource": "*"}
    policy = {"Policy": json.dumps({"Version": "2012-10-17", "Statement": [statement]})} if named else {}
    key = kms.create_key(**policy)["KeyMetadata"]
    for principal in granted:
        kms.create_grant(KeyId=key["KeyId"], GranteePrincipal=principal, Operations=["Decrypt", "CreateGrant"])
    if state == "Disabled":
        kms.disable_key(KeyId=key["KeyId"])
    elif state == "PendingDeletion":
        kms.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=7)
    calls.clear()
    return {"arn": key["Arn"]}


def tag_network(ec2, key, value):
    ids = [s.id for s in ec2.describe_subnets()] + [g.id for g in ec2.describe_security_groups()]
    ec2.create_tags(ids, {key: value})


def told(path, body):
    ec2 = ec2_backends[ACCOUNT][REGION]
    if path == "/test/calls":
        done, calls[:] = list(calls), []
        return done
    if path == "/test/image":
        set_image(ec2, **body)
    elif path == "/test/instance":
        set_instance(ec2, **body)
    elif path == "/test/console":
        consoles[body["id"]] = body["text"]
    elif path == "/test/cluster":
        set_cluster(**body)
    elif path == "/test/network":
        return set_network(**body)
    elif path == "/test/key":
        return set_key(**body)
    elif path == "/test/entry":
        entries.setdefault(body.pop("cluster"), []).append(body)
    elif path == "/test/tags":
        tag_network(ec2, **body)
    elif path == "/test/quota":
        quotas[body["code"]] = body["value"]
    elif path == "/test/profile":
        set_profile(**body)
    elif path == "/test/policy":
        settings["policy"] = IAMPolicy(json.dumps(body))
    elif path == "/test/fault":
        faults.append(body)
    elif path == "/test/no-faults":
        faults.clear()
    elif path == "/test/reset":
        settings["policy"] = None
        for state in (consoles, entries, faults, blackholes, quotas):
            state.clear()
        for backends in (ec2_backends, eks_backends, iam_backends, kms_backends):
            backends[ACCOUNT].reset()
        lead_out(ec2.default_vpc.id)
        calls.clear()
    return {}


def refuse(service, status, code, message):
    if service == "eks":
        return Response(json.dumps({"message": message}), status, {"x-amzn-errortype": code}, content_type="application/json")
    if service in ("kms", "servicequotas"):
        return Response(json.dumps({"__type": code, "message": message}), status, content_type="application/x-amz-json-1.1")
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    whole = f"<Response><Errors>{error}</Errors></Response>" if service == "ec2" else f"<ErrorResponse>{error}</ErrorResponse>"
    return Response(whole, status, content_type="text/xml")


def secret_of(key, token):
    if key in KEYS:
        return KEYS[key]
    roles = [r for r in sts_backends[ACCOUNT]["aws"].assumed_roles if r.access_key_id == key]
    return roles[0].secret_access_key if roles and roles[0].session_token == token else None


def signed_as_botocore_signs(request, scope):
    token = request.headers.get("X-Amz-Security-Token")
    secret = secret_of(scope[0], token)
    if secret is None:
        return False
    signer = SigV4Auth(Credentials(scope[0], secret, token), scope[3], scope[2])
    names = request.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: request.headers[name] for name in names}
    raw = request.environ["REQUEST_URI"]
    again = AWSRequest(request.method, f"http://{request.host}{raw}", data=request.get_data(), headers=headers)
    again.context["timestamp"] = request.headers["X-Amz-Date"]
    # Not the hash that the header says, but that of the body which came.
    hash = hashlib.sha256(request.get_data()).hexdigest()
    if request.headers.get("X-Amz-Content-SHA256", hash) != hash:
        return False
    string = signer.string_to_sign(again, signer.canonical_request(again))
    return request.headers["Authorization"].endswith("Signature=" + signer.signature(string, again))


def action_and_resource(service, request):
    if service == "eks":
        parts = [unquote(p) for p in request.environ["REQUEST_URI"].partition("?")[0].split("/")[1:]]
        cluster = f"arn:aws:eks:{REGION}:{ACCOUNT}:cluster/{parts[1]}"
        if len(parts) == 2:
            return "eks:DescribeCluster", cluster
        if len(parts) == 3:
            return "eks:ListAccessEntries", cluster
        name = parts[3].rsplit("/")[-1]
        return "eks:DescribeAccessEntry", f"arn:aws:eks:{REGION}:{ACCOUNT}:access-entry/{parts[1]}/role/{ACCOUNT}/{name}/0"
    if service == "kms":
        id = json.loads(request.get_data()).get("KeyId", "*").rpartition("/")[2]
        return "kms:" + request.headers["X-Amz-Target"].partition(".")[2], f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{id}"
    if service == "servicequotas":
        return "servicequotas:" + request.headers["X-Amz-Target"].partition(".")[2], "*"
    form = {k: v[0] for k, v in parse_qs(request.get_data().decode()).items()}
    action = f"{service}:{form.get('Action')}"
    if "InstanceId" in form:
        return action, f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{form['InstanceId']}"
    if service == "iam" and "RoleName" in form:
        return action, f"arn:aws:iam::{ACCOUNT}:role/{form['RoleName']}"
    if "InstanceProfileName" in form:
        return action, f"arn:aws:iam::{ACCOUNT}:instance-profile/{form['InstanceProfileName']}"
    return action, "*"


def access_entries(action, request):
    parts = [unquote(p) for p in request.environ["REQUEST_URI"].partition("?")[0].split("/")[1:]]
    of_cluster = entries.get(parts[1], [])
    if action == "eks:DescribeAccessEntry":
        found = [e for e in of_cluster if e["principalArn"] == parts[3]]
        if not found:
            return refuse("eks", 404, "ResourceNotFoundException", "The specified principalArn could not be found")
        return Response(json.dumps({"accessEntry": found[0]}), content_type="application/json")
    # Two on a page, so that pages are turned.
    start = int(request.args.get("nextToken", 0))
    page = {"accessEntries": [e["principalArn"] for e in of_cluster[start : start + 2]]}
    if start + 2 < len(of_cluster):
        page["nextToken"] = str(start + 2)
    return Response(json.dumps(page), content_type="application/json")


def faulty(service, action):
    for fault in list(faults):
        if fault.get("action", action) != action:
            continue
        fault["times"] = fault.get("times", 10**6) - 1
        if fault["times"] <= 0:
            faults.remove(fault)
        if fault["kind"] == "slow":
            time.sleep(fault["seconds"])
            return None
        if fault["kind"] == "body":
            return Response(fault["text"], fault.get("status", 200))
        return refuse(service, fault["status"], fault["code"], fault.get("message", "as the test wants"))
    return None


moto = DomainDispatcherApplication(create_backend_app)


def application(environ, start_response):
    request = Request(environ)
    if request.path == "/test/pod-identity":
        # What eks-pod-identity-agent answers on each Node.
        if request.headers.get("Authorization") != "the-pods-token":
            return Response(status=401)(environ, start_response)
        keys = {"AccessKeyId": "AKIATESTTESTTESTTEST", "SecretAccessKey": "secret", "Token": "of-pod-identity", "AccountId": ACCOUNT}
        return Response(json.dumps(keys | {"Expiration": "2099-01-01T00:00:00Z"}))(environ, start_response)
    if request.path.startswith("/test/"):
        body = json.loads(request.get_data() or "{}")
        return Response(json.dumps(told(request.path, body)))(environ, start_response)
    authorization = request.headers.get("Authorization", "")
    request.get_data()
    if not authorization:
        # STS by a web identity is not signed.
        calls.append("sts:" + request.form.get("Action", request.args.get("Action", "?")))
    else:
        scope = authorization.partition("Credential=")[2].partition(",")[0].split("/")
        service = scope[3]
        action, resource = action_and_resource(service, request)
        calls.append(action)
        answer = faulty(service, action)
        if answer is None and not signed_as_botocore_signs(request, scope):
            answer = refuse(service, 403, "SignatureDoesNotMatch", "botocore signs this otherwise")
        policy = settings["policy"]
        if answer is None and policy and policy.is_action_permitted(action, resource) != PermissionResult.PERMITTED:
            code = {"ec2": "UnauthorizedOperation", "eks": "AccessDeniedException", "iam": "AccessDenied", "kms": "AccessDeniedException", "servicequotas": "AccessDeniedException"}[service]
            answer = refuse(service, 403, code, f"not authorized to perform: {action}")
        if answer is None and "AccessEntr" in action:
            answer = access_entries(action, request)
        if answer is not None:
            return answer(environ, start_response)
    environ["wsgi.input"] = io.BytesIO(request.get_data())
    return moto(environ, start_response)


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True, request_handler=Quiet)
