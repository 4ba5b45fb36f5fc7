import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS
import Trust

/// The administrative pages as exchanges see them: the site for requests to the gateway itself.
final class Administration: LocalSite {
    private let worker: Worker

    init(worker: Worker) { self.worker = worker }

    func answer(
        to request: borrowing RequestHead, in bytes: Span<UInt8>, from client: LocalClient
    ) -> LocalAnswer {
        let admin = worker.policy.configuration.admin
        let host = bytes.text(at: request.host)
        let isOwn = AdminHost.isOwn(
            host, port: request.port, at: client.localAddress, named: admin.hosts)
        let target = bytes.text(at: request.path)
        var asked = AdminRequest(
            method: request.method, target: target,
            accept: values(.accept, of: request, in: bytes),
            acceptEncoding: values(.acceptEncoding, of: request, in: bytes),
            authorization: value(.authorization, of: request, in: bytes),
            isMisdirected: !isOwn, access: access(of: client, under: admin),
            setup: AdminSetup.isShown(at: target)
                ? setup(askedAt: host, local: client.localAddress) : nil)
        asked.contentType = values(.contentType, of: request, in: bytes)
        asked.origin = values(.origin, of: request, in: bytes)
        asked.fetchSite = value(named: "sec-fetch-site", of: request, in: bytes)
        asked.host = value(.host, of: request, in: bytes) ?? ""
        switch request.framing {
        case .none: break
        case .length(let count): asked.contentBytes = count
        case .chunked, .untilClose: asked.contentBytes = .max
        }
        switch worker.shared.administration(asked) {
        case .now(let response): return .now(LocalResponse(response))
        case .later(let begin):
            return .later { reply in begin { reply(LocalResponse($0)) } }
        }
    }

    private func access(of client: LocalClient, under admin: AdminConfiguration) -> AdminAccess {
        let proof: AdminAccess.Proof =
            client.peer?.address.unmapped.scope == .loopback ? .loopback : .none
        return AdminAccess(
            needsToken: admin.metrics == .token,
            token: admin.token.map { AdminSecret($0.bytes) }, proof: proof)
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

    /// The last value of a field that has no number of its own.
    private func value(
        named name: String, of request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> String? {
        var value: String?
        for line in request.fields where line.id == .other {
            if bytes.text(at: line.name).lowercasedASCII == name {
                value = bytes.text(at: line.value)
            }
        }
        return value
    }

    private func value(
        _ field: FieldID, of request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> String? {
        request.fields.first(field).map { bytes.text(at: $0.value) }
    }
}

extension LocalResponse {
    fileprivate init(_ answer: AdminResponse) {
        self.init(
            status: answer.status,
            fields: [("Content-Type", answer.contentType.description)]
                + answer.fields.map { ($0.name, $0.value) },
            body: answer.body)
    }
}
