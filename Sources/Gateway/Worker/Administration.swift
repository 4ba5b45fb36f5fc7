import Addressing
import Admin
import Engine
import EventLoop
import HTTPCore

/// The administration as exchanges see it: the site of requests that are for the gateway itself.
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
            token: admin.token.map { AdminToken($0.bytes) })
        let answer = worker.shared.administration(
            AdminRequest(
                method: request.method, target: bytes.text(at: request.path),
                accept: value(.accept, of: request, in: bytes),
                authorization: value(.authorization, of: request, in: bytes),
                isMisdirected: !isOwn, access: access))
        let fields =
            [("Content-Type", answer.contentType.description)]
            + answer.fields.map { ($0.name, $0.value) }
        return LocalResponse(status: answer.status, fields: fields, body: answer.body)
    }

    private func value(
        _ field: FieldID, of request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> String? {
        request.fields.first(field).map { bytes.text(at: $0.value) }
    }
}
