import EventLoop
import HTTPCore

// Before phase 4: content that arrives slowly does not occupy a connection that others could use.
//
//     the content is all there ──► connect
//     fewer than half of the origin's connections carry requests still arriving ──► connect
//     else ──► gather: all of it, or 64 KiB ──► all there ──► connect
//                                           └─► more to come ──► connect, up to three quarters
extension Exchange {
    /// How long a request that may not connect yet waits before it checks again.
    private static let uploadRetryMilliseconds: Int64 = 100

    /// Whether a connection may be requested now. If not, `forward` is called again once it may.
    func mayConnect(to origin: Origin) -> Bool {
        guard hasRequestBody, !contentHasEnded, replayableBody == nil else { return true }
        let limit = environment.upstreams.limit(of: origin)
        if uploadLimit === limit { return true }
        let limits = origin.policy.configuration.limits
        let isAskedFor = request.expectsContinue
        let step = UploadRule(limit: limits.upstreamPerHost).next(
            uploads: limit.uploads.load(ordering: .relaxed),
            mayGather: !isAskedFor && !(gathered?.isFull ?? false))
        switch step {
        case .connect:
            uploadEnded()
            limit.uploads.add(1, ordering: .relaxed)
            uploadLimit = limit
            return true
        case .gather:
            handle(.decided(.gather))
            let gathered = gathered ?? GatheredContent(environment.loop.buffers, of: self)
            self.gathered = gathered
            guard holds(gathered) else { return false }
            client?.resumeContent()
        case .wait: waitForUploads(origin)
        }
        return false
    }

    private func waitForUploads(_ origin: Origin) {
        let now = environment.loop.now
        handle(.decided(.gather))
        if uploadWaitEnds == 0 {
            uploadWaitEnds =
                now + origin.policy.configuration.timeouts.connectMilliseconds * 2 + 1000
        }
        guard now < uploadWaitEnds, register() else {
            environment.metrics.add(.poolWaitTimeouts)
            return fail(.poolWaitTimeout)
        }
        environment.loop.setDeadline(self, after: Self.uploadRetryMilliseconds)
    }

    /// Collects content while there is no connection. Returns false once the maximum is reached.
    func gather(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> Bool {
        if let rewritten, rewritten.awaitsTranslation {
            return gatherForTranslation(bytes, rewritten)
        }
        guard let gathered else { return false }
        gathered.append(bytes)
        guard isLast || holds(gathered) else { return true }
        guard gathered.isFull, !isLast else { return true }
        // Runs later, when the object may be in use for another exchange.
        let id = id
        environment.loop.afterTurn { [self] in
            if self.id == id, case .gathering = state.step { forward() }
        }
        return false
    }

    /// Counts input that the client may never finish. Returns false if there is no memory for it;
    /// the request has then been answered.
    private func holds(_ gathered: GatheredContent) -> Bool {
        environment.hold(gathered, bytes: gathered.content.capacity)
        return gathered.unfinishedBytes > 0
    }

    /// Sends the collected content after the head.
    func sendGathered(on upstream: any UpstreamStream) {
        guard let gathered else { return }
        self.gathered = nil
        guard gathered.count > 0 else { return }
        upstream.send(gathered.content.readable, owner: gathered.content)
    }

    /// The request has arrived completely, or has ended.
    func uploadEnded() {
        guard let uploadLimit else { return }
        self.uploadLimit = nil
        uploadLimit.uploads.subtract(1, ordering: .relaxed)
    }
}
