import EventLoop
import HTTPCore

// The stages that content passes on its way: those of the request before it goes to the server,
// those of the response between the store and the client. What is stored is what the origin sent.
//
//     client ──► request's stages ──► server ──► store ──► response's stages ──► client
//                                       (cache) ──────────────▲
extension Exchange {
    // MARK: The request

    /// Asks for the stages of the request that is about to be sent: fresh ones for each time.
    @inline(never)
    func chooseRequestStages() {
        stages = nil
        guard hasRequestBody, let origin, let provider = environment.bodyStages else { return }
        let chosen = withRequestHead { provider.requestStages(for: request, in: $0, to: origin) }
        guard let chain = BodyChain(chosen) else { return }
        let stages = ExchangeStages()
        stages.request = chain
        self.stages = stages
    }

    /// Sends content of the request, through its stages if there are any. False: it is refused, and
    /// the exchange may be over.
    @inline(__always)
    func send(
        _ content: UnsafeRawBufferPointer, owner: Buffer, on upstream: any UpstreamStream
    ) -> Bool {
        guard let chain = stages?.request else {
            upstream.send(content, owner: owner)
            return true
        }
        return isPassed { () throws(ExchangeFault) in
            try chain.push(content, owner: owner) { queue($0, owner: $1, on: upstream) }
        }
    }

    /// Sends the end of the request's content, and writes what is queued, unless it is refused.
    func finish(trailers: TrailerSection?, on upstream: any UpstreamStream) {
        if let chain = stages?.request {
            let isAccepted = isPassed { () throws(ExchangeFault) in
                try chain.finish { queue($0, owner: $1, on: upstream) }
            }
            guard isAccepted else { return }
        }
        _ = upstream.finish(trailers: trailers)
    }

    /// Queues what the stages have made of the request's content.
    private func queue(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, on upstream: any UpstreamStream
    ) {
        if let buffer = owner as? Buffer { return upstream.send(content, owner: buffer) }
        let copy = environment.loop.buffers.take(bytes: content.count)
        copy.writable.copyMemory(from: content)
        copy.end = content.count
        upstream.send(copy.readable, owner: copy)
    }

    /// Takes a step through a chain. False: content was refused, and the attempt has failed.
    private func isPassed(_ step: () throws(ExchangeFault) -> Void) -> Bool {
        do throws(ExchangeFault) {
            try step()
            return true
        } catch {
            fail(error)
            return false
        }
    }

    // MARK: The response

    /// Asks for the stages of a final response; nil, mostly: none.
    @inline(__always)
    func chooseResponseStages(
        status: UInt16, _ head: Span<UInt8>, isStored: Bool
    ) -> BodyChain? {
        guard environment.bodyStages != nil else { return nil }
        return askForResponseStages(status: status, head, isStored: isStored)
    }

    @inline(never)
    private func askForResponseStages(
        status: UInt16, _ head: Span<UInt8>, isStored: Bool
    ) -> BodyChain? {
        stages?.response = nil
        guard client != nil, request.method != .head, status != 204, status != 304, let origin,
            let provider = environment.bodyStages
        else { return nil }
        let chosen = head.withUnsafeBytes { head in
            withRequestHead {
                provider.responseStages(
                    for: request, in: $0,
                    of: StagedResponse(status: status, head: head, isStored: isStored),
                    from: origin)
            }
        }
        guard let chain = BodyChain(chosen) else { return nil }
        let stages = self.stages ?? ExchangeStages()
        stages.response = chain
        self.stages = stages
        return chain
    }

    /// Sends the final head, or keeps it back while a stage holds it.
    @inline(__always)
    func send(
        _ head: consuming HeadDraft, status: UInt16, framing: ContentFraming,
        to client: any DownstreamStream
    ) {
        if stages != nil, holdsHead {
            stages?.head = .init(status: status, draft: head, framing: framing)
        } else {
            self.status = status
            client.sendHead(head, framing: framing, closing: false)
        }
    }

    @inline(never)
    private var holdsHead: Bool { stages?.response?.holdsHead ?? false }

    /// Queues content of the response for the client, through its stages if there are any. False:
    /// it is refused, and the exchange may be over.
    @inline(__always)
    func send(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to client: any DownstreamStream
    ) -> Bool {
        guard stages != nil else {
            client.send(content, owner: owner)
            return true
        }
        return pass(content, owner: owner, to: client)
    }

    @inline(never)
    private func pass(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to client: any DownstreamStream
    ) -> Bool {
        guard let chain = stages?.response else {
            client.send(content, owner: owner)
            return true
        }
        return isPassed { () throws(ExchangeFault) in
            try chain.push(content, owner: owner) { letGo($0, owner: $1, to: client) }
        }
    }

    /// Ends the content of the response for its stages. False: it is refused, as above.
    @inline(__always)
    func finishStages(to client: any DownstreamStream) -> Bool {
        stages == nil || finishChain(to: client)
    }

    @inline(never)
    private func finishChain(to client: any DownstreamStream) -> Bool {
        guard let chain = stages?.response else { return true }
        let isAccepted = isPassed { () throws(ExchangeFault) in
            try chain.finish { letGo($0, owner: $1, to: client) }
        }
        if isAccepted { sendHeldHead(to: client) }
        return isAccepted
    }

    /// Queues what the stages have made of the response's content.
    private func letGo(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to client: any DownstreamStream
    ) {
        sendHeldHead(to: client)
        client.send(content, owner: owner)
    }

    private func sendHeldHead(to client: any DownstreamStream) {
        guard let head = stages?.head.take() else { return }
        if case .holding = state.step { handle(.letGo) }
        status = head.status
        client.sendHead(head.draft, framing: head.framing, closing: false)
    }

    /// Lets go of the stages, for what they did is of no use any more. True: the client has seen
    /// nothing of a response.
    func withdrawResponse() -> Bool {
        let stages = stages.take()
        if stages?.head.take() != nil { return true }
        return state.headIsSent && client?.withdrawHead() ?? false
    }
}
