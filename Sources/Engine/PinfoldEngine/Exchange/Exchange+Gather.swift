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
        guard intake.hasContent, !intake.contentHasEnded, intake.replayable == nil else {
            return true
        }
        let limit = environment.upstreams.limit(of: origin)
        if upload.limit === limit { return true }
        let limits = origin.policy.configuration.limits
        let isAskedFor = request.expectsContinue
        let most = min(limits.upstreamPerHost, origin.maxConnections)
        let step = UploadRule(limit: most).next(
            uploads: limit.uploads.load(ordering: .relaxed),
            mayGather: !isAskedFor && !(upload.gathered?.isFull ?? false))
        switch step {
        case .connect:
            uploadEnded()
            limit.uploads.add(1, ordering: .relaxed)
            upload.count(in: limit)
            return true
        case .gather:
            guard goesOn(after: .decided(.gather)) else { return false }
            let gathered =
                upload.gathered ?? GatheredContent(environment.loop.buffers, of: self)
            upload.gather(into: gathered)
            guard holds(gathered) else { return false }
            client?.resumeContent()
        case .wait: waitForUploads(origin)
        }
        return false
    }

    private func waitForUploads(_ origin: Origin) {
        guard goesOn(after: .decided(.gather)) else { return }
        let now = environment.loop.now
        upload.wait(
            until: now + origin.policy.configuration.timeouts.connectMilliseconds * 2 + 1000)
        guard now < upload.waitEnds, register() else {
            environment.metrics.add(.poolWaitTimeouts)
            return fail(.gateway(.poolWaitTimeout))
        }
        environment.loop.setDeadline(self, after: Self.uploadRetryMilliseconds)
    }

    /// Collects content while there is no connection. Returns false once the maximum is reached.
    func gather(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> Bool {
        if let rewritten = upload.rewritten, rewritten.awaitsTranslation {
            return gatherForTranslation(bytes, rewritten)
        }
        guard let gathered = upload.gathered else { return false }
        gathered.append(bytes)
        guard isLast || holds(gathered) else { return true }
        guard gathered.isFull, !isLast else { return true }
        // Runs later, when the object may be in use for another exchange.
        let id = report.id
        environment.loop.afterTurn { [self] in
            if report.id == id, case .gathering = state.step { contentIsGathered() }
        }
        return false
    }

    /// Counts input that the client may never finish. Returns false if there is no memory for it;
    /// the request has then been answered.
    func holds(_ gathered: GatheredContent) -> Bool {
        environment.hold(gathered, bytes: gathered.content.capacity)
        return gathered.unfinishedBytes > 0
    }

    /// Sends the collected content after the head.
    func sendGathered(on upstream: any UpstreamStream) {
        guard upload.gathered != nil, let gathered = upload.gathered else { return }
        if !gathered.isKept {
            _ = upload.takeGathered()
            environment.release(gathered)
        }
        guard gathered.count > 0 else { return }
        upstream.send(gathered.content.readable, owner: gathered.content)
    }

    /// The request has arrived completely, or has ended.
    func uploadEnded() {
        guard upload.limit != nil, let limit = upload.takeLimit() else { return }
        limit.uploads.subtract(1, ordering: .relaxed)
    }

    /// What was collected is complete, or will not be.
    func releaseGathered() {
        if let gathered = upload.gathered { environment.release(gathered) }
    }
}
