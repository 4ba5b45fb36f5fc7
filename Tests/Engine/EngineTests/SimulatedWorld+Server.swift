import HTTPCore

@testable import PinfoldEngine

/// What a server of the simulation answers.
struct SimulatedReply {
    let status: Int
    let head: String
    /// nil: none, as with 304.
    let content: Representation?
}

/// When a stream was handed out, and under which policy.
struct SimulatedAttempt {
    let step: Int
    /// The generation of what its origin is trusted by.
    let trust: UInt64?
}

// The servers: what they have, and what they say about it.
extension SimulatedWorld {
    /// - Parameters:
    ///   - request: what the client sent; nil in the background.
    ///   - head: the request's, as the server got it.
    ///   - attempt: when the stream was handed out, and under which policy.
    func reply(
        to request: SimulatedRequest?, head: UnsafeRawBufferPointer, method: Method,
        _ attempt: SimulatedAttempt
    ) -> SimulatedReply {
        let named = ReceivedHead.value("\r\nx-request: ", in: head)
            .flatMap { ReceivedHead.number(in: head, at: $0) }
        guard let asked = request ?? named.flatMap({ self.request(numbered: $0) }) else {
            fail("a server is asked for nobody")
            return SimulatedReply(
                status: 500, head: "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", content: nil)
        }
        let isPrivate =
            request?.isPrivate ?? (ReceivedHead.value("\r\nauthorization: ", in: head) != nil)
        guard method == .get || method == .head, !isPrivate else {
            return privateReply(to: asked, method, attempt)
        }
        if random.chance(10) {
            return send(
                makeRepresentation(
                    of: asked.url, status: random.pick([500, 503]), isPrivate: false,
                    variant: asked.variant), to: request, method, attempt)
        }
        let tags = Self.entityTags(head)
        if let current = urls[asked.url].current.map({ representations[$0] }),
            tags.contains(current.number), current.variant ?? asked.variant == asked.variant,
            random.chance(85)
        {
            return notModified(current, attempt)
        }
        if random.chance(4) {
            request?.hasOddNotModified = true
            return SimulatedReply(
                status: 304, head: "HTTP/1.1 304 Not Modified\r\nETag: \"none\"\r\n\r\n",
                content: nil)
        }
        let current = current(of: asked)
        if method == .get, let positions = positions(in: current, head), random.chance(80) {
            note(attempt, current)
            return send(Representation(positions, of: current), to: request, method, attempt)
        }
        return send(current, to: request, method, attempt)
    }

    /// The part that a request asks for; `nil` if it gets the whole.
    private func positions(
        in whole: Representation, _ head: UnsafeRawBufferPointer
    ) -> Range<Int>? {
        guard whole.status == 200, case .length = whole.framing, !isRuled,
            let start = ReceivedHead.value("\r\nrange: bytes=", in: head)
        else { return nil }
        if let tag = ReceivedHead.value("\r\nif-range: \"", in: head),
            !whole.hasTag || ReceivedHead.number(in: head, at: tag) != whole.number
        {
            return nil
        }
        let count = whole.body.count
        guard let dash = head[start...].firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let last = ReceivedHead.number(in: head, at: dash + 1)
        guard let first = ReceivedHead.number(in: head, at: start) else {
            return last.map { max(0, count - $0)..<count }.flatMap { $0.isEmpty ? nil : $0 }
        }
        let end = min(count, last.map { $0 + 1 } ?? count)
        return first < end ? first..<end : nil
    }

    private func privateReply(
        to request: SimulatedRequest, _ method: Method, _ attempt: SimulatedAttempt
    ) -> SimulatedReply {
        let status = random.pick([200, 200, 200, 204, 404, 500])
        let made = makeRepresentation(
            of: request.url, status: status, isPrivate: true, variant: request.variant)
        if !request.isSafe, status < 400 { urls[request.url].current = nil }
        return send(made, to: request, method, attempt)
    }

    /// What there is for a request, a new version of it at times.
    private func current(of request: SimulatedRequest) -> Representation {
        if let number = urls[request.url].current, random.chance(80) {
            let known = representations[number]
            if known.variant ?? request.variant == request.variant { return known }
        }
        let made = makeRepresentation(
            of: request.url, status: random.pick([200, 200, 200, 200, 200, 404, 204]),
            isPrivate: false, variant: request.variant)
        urls[request.url].current = made.number
        return made
    }

    private func send(
        _ content: Representation, to request: SimulatedRequest?, _ method: Method,
        _ attempt: SimulatedAttempt
    ) -> SimulatedReply {
        note(attempt, content)
        request?.brought.append(content.number)
        var head = "HTTP/1.1 \(content.status) X\r\n\(content.fields)"
        switch content.framing {
        case .length(let count): head += "Content-Length: \(count)\r\n"
        case .chunked: head += "Transfer-Encoding: chunked\r\n"
        case .none, .untilClose: break
        }
        // Without a validator, a HEAD response would update whatever is stored.
        if method == .head, !content.hasTag { head += "ETag: \"\(content.number)\"\r\n" }
        return SimulatedReply(status: content.status, head: head + "\r\n", content: content)
    }

    private func notModified(_ content: Representation, _ attempt: SimulatedAttempt)
        -> SimulatedReply
    {
        note(attempt, content)
        var head = "HTTP/1.1 304 Not Modified\r\nETag: \"\(content.number)\"\r\n"
        if content.variant != nil { head += "Vary: X-Vary\r\n" }
        if random.chance(50) { head += "Cache-Control: max-age=\(random.below(4))\r\n" }
        return SimulatedReply(status: 304, head: head + "\r\n", content: nil)
    }

    private func note(_ attempt: SimulatedAttempt, _ content: Representation) {
        content.asked = max(content.asked, attempt.step)
        if !content.trusts.contains(attempt.trust) { content.trusts.append(attempt.trust) }
    }

    /// A head has gone to the exchange that asked.
    func noteAnswered(_ request: SimulatedRequest?, _ reply: SimulatedReply) {
        guard let request, !request.isSafe, (200..<400).contains(reply.status) else { return }
        urls[request.url].invalidated = stepNumber
    }

    /// The numbers in If-None-Match.
    private static func entityTags(_ head: UnsafeRawBufferPointer) -> [Int] {
        guard let start = ReceivedHead.value("\r\nif-none-match: ", in: head) else { return [] }
        var tags: [Int] = []
        var index = start
        while index < head.count, head[index] != 0x0D {
            if head[index - 1] == 0x22, let tag = ReceivedHead.number(in: head, at: index) {
                tags.append(tag)
                while head[index] >= 0x30, head[index] <= 0x39 { index += 1 }
            } else {
                index += 1
            }
        }
        return tags
    }
}
