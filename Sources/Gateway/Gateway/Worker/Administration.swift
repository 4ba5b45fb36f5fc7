import EventLoop
import HTTPCore
import Logging
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
        asked.lastEventID = value(named: "last-event-id", of: request, in: bytes)
        asked.mayRecordSecrets = admin.recordSecrets
        asked.host = value(.host, of: request, in: bytes) ?? ""
        switch request.framing {
        case .none: break
        case .length(let count): asked.contentBytes = count
        case .chunked, .untilClose: asked.contentBytes = .max
        }
        return answer(to: asked, from: client, isCommand: !request.isSafe)
    }

    private func answer(
        to asked: AdminRequest, from client: LocalClient, isCommand: Bool
    ) -> LocalAnswer {
        // Whoever comes next needs the descriptor.
        let isLast = worker.isReserveInUse
        switch worker.shared.administration(asked) {
        case .afterContent(let most):
            return .afterContent(maximum: most) { [self] content in
                var asked = asked
                asked.content = content
                return answer(to: asked, from: client, isCommand: isCommand)
            }
        case .now(let response):
            if isCommand { log(asked, from: client, refused: response.status >= 400) }
            return .now(LocalResponse(response, closing: isLast))
        case .later(let begin):
            if isCommand { log(asked, from: client, refused: false) }
            return .later { reply in begin { reply(LocalResponse($0, closing: isLast)) } }
        case .stream(let response, let pieces):
            return .stream(LocalResponse(response, closing: isLast), next: pieces)
        }
    }

    /// Logs a request that is to change something, and who sent it.
    private func log(_ asked: AdminRequest, from client: LocalClient, refused: Bool) {
        var metadata: Logger.Metadata = ["method": "\(asked.method)", "target": "\(asked.path)"]
        if let process = client.ingress?.process {
            metadata["pid"] = "\(process.pid)"
            metadata["uid"] = "\(process.user)"
        } else if let peer = client.peer {
            metadata["client"] = "\(peer)"
        }
        if let subject = client.ingress?.session?.subject { metadata["subject"] = "\(subject)" }
        worker.shared.logger.notice(
            refused ? "administrative command refused" : "administrative command",
            metadata: metadata)
    }

    private func access(of client: LocalClient, under admin: AdminConfiguration) -> AdminAccess {
        let proof: AdminAccess.Proof =
            if client.ingress?.path != nil {
                .socket
            } else if client.hasCertificate {
                .certificate
            } else if client.peer?.address.unmapped.scope == .loopback {
                .loopback
            } else {
                .none
            }
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
        let site = worker.ingress(of: .admin)
        let pem = configuration.interception.authority?.certificatePEM
        let anchor = pem.flatMap { CertificateAuthority.anchor(inPEM: $0) }
        return AdminSetup(
            proxy: worker.ingress(of: .forward).flatMap {
                $0.path == nil ? address($0.endpoint, isSecure: $0.tls != nil) : nil
            },
            // What is asked of a Unix socket has this address, whatever its path.
            site: site.flatMap {
                $0.path == nil ? address($0.endpoint, isSecure: $0.tls != nil) : nil
            }
                ?? AdminSetup.Address(host: "localhost", port: 80),
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

extension LocalClient {
    /// Whether its handshake would have failed without a certificate of a trusted issuer.
    fileprivate var hasCertificate: Bool {
        guard let ingress, ingress.session != nil, let tls = ingress.tls?.configuration else {
            return false
        }
        return !tls.clientRoots.isEmpty && tls.clientCertificates == .required
    }
}

extension LocalResponse {
    fileprivate init(_ answer: AdminResponse, closing: Bool) {
        self.init(
            status: answer.status,
            fields: [("Content-Type", answer.contentType.description)]
                + answer.fields.map { ($0.name, $0.value) },
            body: answer.body)
        closesConnection = closing
    }
}
