import CachePolicy
import CacheStore
import EventLoop
import HTTPCore
import Logging
import PinfoldConfiguration

// Phase 3 for PURGE, where `cache.purge` allows it: what is stored for the URL, or has the tags
// that fields name, is purged, and the gateway replies when that is in effect.
//
//     routing ──► allowed? ── no ──► reply
//                    └── loading ── purged, on another thread, and told to all workers ──► reply
extension Exchange {
    /// Carries out or refuses a PURGE; `false` if the request is none, or PURGE is an ordinary
    /// method, which is forwarded.
    @inline(never)
    func answersPurge(at origin: Origin) -> Bool {
        guard let access = environment.policy.configuration.cache.purge, client != nil,
            withRequestHead({ $0.extracting(request.methodRange.indices).equals("PURGE") })
        else { return false }
        do throws(PurgeRequestError) {
            try authorizePurge(by: access)
            try purge(makeOrder(at: origin))
        } catch {
            refusePurge(error)
        }
        return true
    }

    /// Has tokens for purging end here, whatever the method.
    @inline(never)
    func endPurgeTokens() { request.endPurgeTokens(in: requestHead.octets) }

    private func refusePurge(_ error: PurgeRequestError) {
        let closing = !intake.contentHasEnded || error == .draining
        audit("purge refused", ["reason": "\(error.reason.entry.token)"])
        reply(with: .purge(error), closing: closing)
    }

    // MARK: Who may

    private func authorizePurge(by access: PurgeConfiguration) throws(PurgeRequestError) {
        guard access.admits(peer?.address) else { throw .clientNotAllowed }
        guard let token = access.token else { return }
        let now = environment.loop.monotonicNow
        let network = clientNetwork ?? peer.map { IPNetwork(client: $0.address) }
        if let network {
            let pause = environment.shared.purgeFailures.withLock {
                $0.pause(network, "", at: now)
            }
            guard pause == 0 else {
                throw .tooManyFailures(seconds: (pause + 999) / 1000)
            }
        }
        guard let isRight = presents(token) else { throw .tokenMissing }
        guard isRight else {
            if let network {
                environment.shared.purgeFailures.withLock { $0.failed(network, "", at: now) }
            }
            throw .tokenWrong
        }
        if let network {
            environment.shared.purgeFailures.withLock { $0.succeeded(network, "") }
        }
    }

    /// Whether the request's token is this one; `nil` if it has none. It is the client's: what
    /// rules put in its place, or remove, is for the server.
    private func presents(_ token: BearerToken) -> Bool? {
        guard let sent = clientHead else {
            return withRequestHead { presents(token, in: request, $0) }
        }
        var head = RequestHead()
        var parser = RequestHeadParser(limits: .rewritten, carrier: request.version.carrier)
        let progress = try? parser.parse(sent.bytes.span, into: &head)
        guard progress == .complete(headBytes: sent.bytes.count) else { return nil }
        return presents(token, in: head, sent.bytes.span)
    }

    /// The same for a head. X-Purge-Token alone decides if it is there: who sends it says that
    /// Authorization is for something else.
    private func presents(
        _ token: BearerToken, in head: borrowing RequestHead, _ bytes: Span<UInt8>
    ) -> Bool? {
        let own = head.purgeTokens(in: bytes)
        if let value = own.first {
            guard own.count == 1 else { return false }
            return token.isEqual(to: bytes.extracting(value.indices))
        }
        // Where it has proved who is asking, it is no token.
        guard !caller.consumedAuthorization else { return nil }
        guard head.fields.contains(.authorization) else { return nil }
        // RFC 9110 §11.6.2: one field.
        guard let line = head.fields.only(.authorization) else { return false }
        return token.isIn(bytes.extracting(line.value.indices))
    }

    // MARK: What

    private func makeOrder(at origin: Origin) throws(PurgeRequestError) -> PurgeOrder {
        let head = requestHead
        let fields = try PurgeFields(of: request, in: head.octets)
        var scopes: [Purge.Scope] = fields.tags.map { .tag($0) }
        let server = origin.keyStart.withoutRoute
        scopes += fields.groups.map { .tag($0, origin: server) }
        if scopes.isEmpty { scopes = [try scopeOfURL(at: origin)] }
        return PurgeOrder(scopes: scopes, isSoft: fields.isSoft, isDryRun: fields.isDryRun)
    }

    /// The URL, under the key that a GET would have, by whatever route and ways; or, if it ends
    /// with `*`, all that begin like it.
    private func scopeOfURL(at origin: Origin) throws(PurgeRequestError) -> Purge.Scope {
        let path = withRequestHead { bytes in
            request.path.indices.map { bytes[$0] }
        }
        if path.last == UInt8(ascii: "*") {
            let start = path.first == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]
            return .prefix(origin.keyStart.withoutRoute + start + path.dropLast())
        }
        guard let view = writeKey(origin) else {
            throw .malformed(
                field: "the URL", expected: "one of at most \(CacheKey.maximumBytes) bytes")
        }
        return .keys(CacheKey(view).alongAllRoutes(under: environment.policy))
    }

    // MARK: The purge

    private func purge(_ order: PurgeOrder) throws(PurgeRequestError) {
        guard let purges = environment.shared.purges, let store else {
            // There is no cache: nothing is stored.
            let nothing = PurgeResult(id: 0, isComplete: true)
            return sendPurged(
                order.isDryRun ? .counted(memory: 0, disk: 0) : .purged(nothing), order)
        }
        // Another process may serve already, and what that has in memory is purged only if they
        // share the disk. By a pattern, the store knows.
        guard order.isDryRun || !environment.isDraining || store.hasHandedOverDisk else {
            throw .draining
        }
        guard register() else { throw .busy }
        let (token, mailbox) = (token, environment.mailbox)
        guard goesOn(after: .decided(.load)) else { return }
        let isAccepted = purges.submit(order, for: clientNetwork) {
            mailbox.post(.purgeEnded(token, order, $0))
        }
        // What is refused at once is answered at once.
        guard isAccepted else {
            if goesOn(after: .loaded) { throw .busy }
            return
        }
        // Its client may leave before it is done.
        audit("purge begins", ["what": "\(order.text)", "soft": "\(order.isSoft)"])
    }

    /// Handles what came of a purge.
    func purgeEnded(_ outcome: PurgeOutcome, _ order: PurgeOrder) {
        guard goesOn(after: .loaded) else { return }
        switch outcome {
        case .purged, .counted: sendPurged(outcome, order)
        case .handedOver, .notCounted(.handedOver): refusePurge(.draining)
        case .notCounted(.busy): refusePurge(.busy)
        case .notCounted(let error): refusePurge(.notCounted("\(error)"))
        case .failed(let cause), .invalid(let cause): refusePurge(.failed(cause))
        }
    }

    private func sendPurged(_ outcome: PurgeOutcome, _ order: PurgeOrder) {
        var members = ["\"soft\":\(order.isSoft)", "\"dryRun\":\(order.isDryRun)"]
        var metadata: Logger.Metadata = [
            "what": "\(order.text)", "soft": "\(order.isSoft)", "dry_run": "\(order.isDryRun)",
        ]
        switch outcome {
        case .purged(let result):
            members += [
                "\"id\":\(result.id)", "\"memoryEntries\":\(result.memoryEntries)",
                "\"diskEntries\":\(result.diskEntries)", "\"complete\":\(result.isComplete)",
            ]
            metadata["purge"] = "\(result.id)"
            metadata["memory_entries"] = "\(result.memoryEntries)"
            metadata["disk_entries"] = "\(result.diskEntries)"
            if let fleet = result.fleet {
                members.append("\"fleet\":\(fleet.json)")
                metadata.merge(fleet.metadata) { $1 }
            }
        case .counted(let memory, let disk):
            members += ["\"memoryEntries\":\(memory)", "\"diskEntries\":\(disk)"]
            metadata["memory_entries"] = "\(memory)"
            metadata["disk_entries"] = "\(disk)"
        case .handedOver, .notCounted, .failed, .invalid: return
        }
        audit("purged", metadata)
        let text = "{" + members.joined(separator: ",") + "}\n"
        sendLocal(
            status: 200, contentType: "application/json", closing: !intake.contentHasEnded,
            body: { Array(text.utf8) })
    }

    /// Logs who has asked for a purge.
    private func audit(_ text: Logger.Message, _ metadata: Logger.Metadata) {
        var metadata = metadata
        metadata["id"] = "\(idText)"
        if let peer { metadata["client"] = "\(String(peer.clientText))" }
        if let identity { metadata["user"] = "\(identity.user)" }
        if let ingress { metadata["listener"] = "\(ingress.name)" }
        metadata["url"] = "\(withRequestHead { $0.text(at: request.target) })"
        environment.shared.logger.notice(text, metadata: metadata)
    }
}

extension PurgeResult.Fleet {
    /// As the reply to PURGE has it.
    fileprivate var json: String {
        var object = JSONObject()
        object.add("recorded", isRecorded)
        object.add("confirmed", confirmed)
        object.add("unconfirmed", unconfirmed)
        object.add("away", away)
        return object.text
    }

    /// For the log.
    package var metadata: Logger.Metadata {
        var metadata: Logger.Metadata = [
            "fleet_recorded": "\(isRecorded)", "fleet_confirmed": "\(confirmed.count)",
        ]
        if !unconfirmed.isEmpty {
            metadata["fleet_unconfirmed"] = "\(unconfirmed.prefix(10).joined(separator: " "))"
        }
        if !away.isEmpty {
            metadata["fleet_away"] = "\(away.prefix(10).joined(separator: " "))"
        }
        return metadata
    }
}

extension PurgeOrder {
    /// What is purged, for the log: at most ten of each, without the kinds of routes.
    package var text: String {
        let first = scopes.prefix(10).map(\.text).joined(separator: ", ")
        return scopes.count > 10 ? "\(first) and \(scopes.count - 10) more" : first
    }
}

extension Purge.Scope {
    /// For the log.
    package var text: String {
        func text(_ bytes: some Collection<UInt8>) -> String {
            String(decoding: bytes, as: UTF8.self)
        }
        switch self {
        case .keys(let keys):
            var shown: [ArraySlice<UInt8>] = []
            for key in keys where shown.count <= 10 {
                let uri = key.bytes.dropRoute
                if !shown.contains(uri) { shown.append(uri) }
            }
            let first = shown.prefix(10).map { text($0) }.joined(separator: ", ")
            return shown.count > 10 ? "\(first) and others" : first
        case .prefix(let prefix): return "\(text(prefix))*"
        case .host(let host): return "host \(host)"
        case .tag(let tag, nil): return "tag \(text(tag))"
        case .tag(let tag, let origin?): return "tag \(text(tag)) of \(text(origin))"
        case .everything: return "everything"
        case .uri(let uri): return text(uri)
        }
    }
}
