"""What a coordinator tells generic tools: the health of its services, and reflection, by PyPI's grpcio, in plain text and with TLS.
Skipped if these packages or the program evoxo are missing."""

import importlib.util
import subprocess
import tempfile
import unittest
from pathlib import Path

from .test_ask import real

PACKAGES = ["grpc", "grpc_reflection", "grpc_health"]
SERVICES = ["evoxo.v1.AccessService", "evoxo.v1.RunService", "evoxo.v1.WorkerService"]
PATIENCE = 60
EVOXO = real()


def missing():
    return [package for package in PACKAGES if importlib.util.find_spec(package) is None]


@unittest.skipIf(missing(), f"these packages are not there: {', '.join(missing())}")
@unittest.skipUnless(EVOXO, "the program evoxo is not there: build it, or set EVOXO")
class Services(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.desk = Path(folder.name)

    def coordinator(self, *arguments):
        """The address of a coordinator that ends with its test."""
        command = [EVOXO, "coordinator", "--listen", "127.0.0.1:0", "--announce", "--store", self.desk / "store"]
        log = (self.desk / "log").open("w+")
        self.addCleanup(log.close)
        process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        address = process.stdout.readline().strip()
        self.assertTrue(address, log.seek(0) or log.read())
        return address

    def look(self, channel):
        """Checks everything that is visible over this channel."""
        import grpc
        from google.protobuf import descriptor_pool, message_factory
        from grpc_health.v1 import health_pb2, health_pb2_grpc
        from grpc_reflection.v1alpha import reflection_pb2
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

        health = health_pb2_grpc.HealthStub(channel)
        for service in ["", *SERVICES]:
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
            self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING, service)
        with self.assertRaises(grpc.RpcError) as refused:
            health.Check(health_pb2.HealthCheckRequest(service="evoxo.v1.NoService"), timeout=PATIENCE)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.NOT_FOUND)

        # Both versions have the same messages; the package on PyPI has those of the older version.
        for version in ["v1", "v1alpha"]:
            call = channel.stream_stream(
                f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
                response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
            )
            [answer] = call(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=PATIENCE)
            named = {service.name for service in answer.list_services_response.service}
            self.assertLessEqual({*SERVICES, "grpc.health.v1.Health"}, named, version)

        # A call that is known only from reflection.
        pool = descriptor_pool.DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        method = pool.FindServiceByName("evoxo.v1.RunService").FindMethodByName("List")
        asked, answered = map(message_factory.GetMessageClass, [method.input_type, method.output_type])
        call = channel.unary_unary(
            "/evoxo.v1.RunService/List",
            request_serializer=asked.SerializeToString,
            response_deserializer=answered.FromString,
        )
        self.assertEqual(list(call(asked(), timeout=PATIENCE).runs), [])

    def test_in_plain_text(self):
        import grpc

        with grpc.insecure_channel(self.coordinator()) as channel:
            self.look(channel)

    def test_with_tls(self):
        import grpc

        access = self.desk / "access"
        subprocess.run([EVOXO, "coordinator", "init", "--access", access], check=True, capture_output=True)
        address = self.coordinator("--access", access)
        # As with grpcurl -cacert FILE -cert FILE -key FILE -authority evoxo-coordinator: one file contains all three.
        pem = (access / "operator.access").read_bytes()
        options = [("grpc.ssl_target_name_override", "evoxo-coordinator")]
        credentials = grpc.ssl_channel_credentials(pem, pem, pem)
        with grpc.secure_channel(address, credentials, options) as channel:
            self.look(channel)
        nobody = grpc.ssl_channel_credentials(pem)
        with grpc.secure_channel(address, nobody, options) as channel:
            call = channel.unary_unary("/grpc.health.v1.Health/Check")
            with self.assertRaises(grpc.RpcError) as refused:
                call(b"", timeout=PATIENCE)
        self.assertIn(refused.exception.code(), {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED})


if __name__ == "__main__":
    unittest.main()
