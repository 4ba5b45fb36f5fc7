import EventLoop
import HTTPCore
import PinfoldConfiguration

// The ways of an exchange: what is sent along to a parent, and what a parent answers.
extension Exchange {
    package func upstreamGoes(by parent: UpstreamProxy?) { remarks.goes(through: parent) }

    package func upstreamGoes(toUnixSocket path: String) { remarks.goes(toUnixSocket: path) }

    /// The path of the Unix socket that the request went to last, or was tried to go; `nil` if it
    /// was an address.
    var unixSocket: String? {
        guard let path = remarks.unixPath,
            (remarks.failedAttempts?.last ?? report.server) == .unnamed
        else { return nil }
        return path
    }

    /// The name of the parent that it went through, or the path of the Unix socket that it went to,
    /// in UTF-8; usually empty.
    package var wayBytes: [UInt8] {
        remarks.parent?.nameBytes ?? unixSocket.map { Array($0.utf8) } ?? []
    }

    /// What a parent is sent along that is asked for a tunnel.
    package var passage: Passage {
        var passage = Passage()
        guard isIntermediary else { return passage }
        passage.via = viaLines
        passage.credentials = credentialsForProxies
        return passage
    }

    /// The same for a tunnel that has been answered, if it may lead through a parent.
    func passageByWays(to authority: BoundAuthority) -> Passage {
        let policy = environment.policy
        let rule = policy.ruleWays(of: accessRequest(scope: .authority), to: authority)
        return policy.ways(to: authority, by: rule) == nil ? Passage() : passage
    }

    /// The lines of Via that the request came with, and the gateway's own.
    private var viaLines: [UInt8] {
        var lines: [UInt8] = []
        withRequestHead { bytes in
            for field in request.fields where field.id == .via {
                lines += Array("Via: ".utf8)
                bytes.extracting(field.value.indices).withUnsafeBytes { lines += $0 }
                lines += [0x0D, 0x0A]
            }
        }
        let own = environment.loop.buffers.take(bytes: ViaEntry.maximumLineBytes)
        var writer = HeadWriter(own.writable)
        if let name = pseudonym {
            ViaEntry(name, environment.shared.viaMark)
                .append(received: request.version, to: &writer)
        } else {
            writer.appendVia(received: request.version)
        }
        own.end = writer.count
        lines += own.readable
        return lines
    }

    /// What the client has sent for a proxy, if it is of a kind that may be passed on. Whoever
    /// speaks to a reverse listener or in a tunnel does not speak to a proxy.
    private var credentialsForProxies: String? {
        guard case .forward = ingress?.role, let line = request.fields.only(.proxyAuthorization)
        else { return nil }
        let value = withRequestHead { $0.text(at: line.value) }
        return Passage.mayPass(value) ? value : nil
    }

    /// The parent that forwards the request, which is not in a tunnel through it; `nil` if none
    /// does.
    var forwardingParent: UpstreamProxy? {
        guard let parent = remarks.parent, parent.forwardsRequests, let origin,
            !origin.key.isSecure, origin.key.proxyHeader == nil, !asksForUpgrade
        else { return nil }
        return parent
    }

    /// Whether a 407 is the answer of a parent that knows the gateway by other credentials than the
    /// client's, to whom it says nothing. The request then fails.
    @inline(never)
    func isRefusedByParent() -> Bool {
        guard let parent = forwardingParent, !parent.passesCredentials else { return false }
        let error = ProxyError.refused(ProxyAnswer(status: response.status))
        environment.parentFailed(parent, error)
        fail(.proxy(error))
        return true
    }
}
