import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldTLS
import Trust

/// The administrative pages as exchanges see them: the site for requests to the gateway itself.
final class Administration: LocalSite {
    private let worker: Worker

    init(worker: Worker) { self.worker = worker }

    func response(
        to request: borrowing RequestHead, in bytes: Span<UInt8>, at address: IPAddress?
    ) -> LocalResponse {
        let admin = worker.policy.configuration.admin
        let isOwn = AdminHost.isOwn(
            bytes.text(at: request.host), port: request.port, at: address, named: admin.hosts)
        let access = AdminAccess(
            needsToken: admin.metrics == .token,
            token: admin.token.map { AdminSecret($0.bytes) })
        let target = bytes.text(at: request.path)
        let host = bytes.text(at: request.host)
        let answer = worker.shared.administration(
            AdminRequest(
                method: request.method, target: target,
                accept: values(.accept, of: request, in: bytes),
                acceptEncoding: values(.acceptEncoding, of: request, in: bytes),
                authorization: value(.authorization, of: request, in: bytes),
                isMisdirected: !isOwn, access: access,
                setup: AdminSetup.isShown(at: target) ? setup(askedAt: host, local: address) : nil))
        let fields =
            [("Content-Type", answer.contentType.description)]
            + answer.fields.map { ($0.name, $0.value) }
        return LocalResponse(status: answer.status, fields: fields, body: answer.body)
    }

    /// The content of the setup pages.
    private func setup(askedAt host: String, local: IPAddress?) -> AdminSetup {
        func address(_ endpoint: Endpoint, isSecure: Bool = false) -> AdminSetup.Address {
            AdminSetup.Address(
                host: SetupAddress.host(listener: endpoint.address, asked: host, local: local),
                port: endpoint.port, isSecure: isSecure)
        }
        let configuration = worker.policy.configuration
        let pem = configuration.interception.authority?.certificatePEM
        let anchor = pem.flatMap { CertificateAuthority.anchor(inPEM: $0) }
        return AdminSetup(
            proxy: worker.ingress(of: .forward).map {
                address($0.endpoint, isSecure: $0.tls != nil)
            },
            site: address(worker.ingress(of: .admin)?.endpoint ?? configuration.admin.address),
            authority: anchor.flatMap { anchor in
                SHA256Digest(hashing: anchor.der.span).map {
                    AdminSetup.Authority(
                        pem: anchor.pem, der: anchor.der, fingerprint: $0.fingerprintText)
                }
            })
    }

    /// The values of a list, joined, or `nil` if there are none.
    private func values(
        _ field: FieldID, of request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> String? {
        var values: [String] = []
        for line in request.fields where line.id == field {
            values.append(bytes.text(at: line.value))
        }
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    private func value(
        _ field: FieldID, of request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> String? {
        request.fields.first(field).map { bytes.text(at: $0.value) }
    }
}
