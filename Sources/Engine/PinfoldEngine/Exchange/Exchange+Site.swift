import EventLoop
import HTTPCore

// Requests for the gateway itself: metrics, health, the administrative API.
//
//     routing ──► the site's answer ── now ──► reply
//        │            ├── later: loading ── it is there ──► reply
//        │            ├── stream: head ── serving ── piece, written ── next piece ──► end
//        │            └── by content: gathering ── all there ──► the site's answer, again
extension Exchange {
    /// A request for the gateway itself.
    func answerAdministration() {
        guard request.form == .origin || request.form == .absolute else {
            return reply(with: .access(.notAProxyRequest), closing: true)
        }
        guard let site = environment.site else {
            return reply(with: .access(.notAProxyRequest), closing: true)
        }
        let asking = LocalClient(
            ingress: ingress, peer: peer, localAddress: client?.localEndpoint?.address)
        perform(withRequestHead { site.answer(to: request, in: $0, from: asking) })
    }

    private func perform(_ answer: LocalAnswer) {
        switch answer {
        case .now(let response): send(response)
        case .afterContent(let maximum, let answer): gather(upTo: maximum, for: answer)
        case .later(let begin):
            guard register() else {
                return reply(with: .gateway(.descriptorsExhausted), closing: true)
            }
            guard goesOn(after: .decided(.load)) else { return }
            let (token, mailbox) = (token, environment.mailbox)
            begin { mailbox.post(.siteAnswered(token, $0)) }
        case .stream(let response, let pieces): stream(response, pieces)
        }
    }

    // MARK: Content

    private func gather(upTo maximum: Int, for answer: @escaping ([UInt8]) -> LocalAnswer) {
        let gathered = GatheredContent(environment.loop.buffers, of: self)
        upload.gather(into: gathered)
        upload.awaitContent(of: maximum, for: answer)
        if intake.contentHasEnded { return contentOfSiteIsGathered() }
        guard goesOn(after: .decided(.gather)), holds(gathered) else { return }
        askForContent()
        request.expectsContinue = false
        intake.gatherContent()
        client?.resumeContent()
    }

    /// The content that the site's answer depends on is complete, or is more than it may be.
    func contentOfSiteIsGathered() {
        guard let awaited = upload.takeAwaited(), let gathered = upload.takeGathered() else {
            return
        }
        environment.release(gathered)
        if case .gathering = state.step, !goesOn(after: .decided(.lookUp)) { return }
        guard intake.contentHasEnded, gathered.count <= awaited.maximum else {
            return send(
                LocalResponse(
                    status: 413, fields: [("Cache-Control", "no-store")],
                    body: Array("the content may have \(awaited.maximum) bytes\n".utf8)))
        }
        perform(awaited.answer([UInt8](gathered.content.readable)))
    }

    // MARK: The response

    /// Handles the response of the gateway itself that was not there at once.
    func siteAnswered(_ response: LocalResponse) {
        if goesOn(after: .loaded) { send(response) }
    }

    // MARK: A response that goes on

    private func stream(_ response: LocalResponse, _ pieces: @escaping LocalPieces) {
        guard request.method != .head else { return send(response) }
        guard register() else {
            return reply(with: .gateway(.descriptorsExhausted), closing: true)
        }
        guard goesOn(after: .decided(.serve)), let client else { return }
        report.answered(response.status)
        serving.send(pieces)
        var head = makeReplyHead(on: client, response.status, nil)
        head.fields.append(field: .date, date: environment.wallSeconds)
        append(response.fields, to: &head.fields)
        client.expectPauses()
        client.sendHead(head, framing: .streamed, closing: false)
        if client.flush() { askForPiece() }
    }

    /// Everything has been written: the next piece may come.
    func askForPiece() {
        guard let pieces = serving.pieces else { return }
        let (token, mailbox) = (token, environment.mailbox)
        pieces { mailbox.post(.siteSent(token, $0)) }
    }

    /// Handles a piece of the content.
    func siteSent(_ piece: LocalPiece) {
        guard case .serving = state.step, serving.pieces != nil, let client else { return }
        switch piece {
        case .bytes(let bytes):
            let buffer = environment.loop.buffers.take(bytes: max(1, bytes.count))
            buffer.writable.copyBytes(from: bytes)
            buffer.end = bytes.count
            client.send(buffer.readable, owner: buffer)
            if client.flush() { askForPiece() }
        case .end:
            serving.endPieces()
            guard goesOn(after: .decided(.respond)) else { return }
            if client.finish(trailers: nil) { clientDrained() }
        }
    }

    private func append(
        _ fields: [(name: String, value: String)], to writer: inout HeadWriter
    ) {
        for field in fields { writer.append(text: "\(field.name): \(field.value)\r\n") }
    }

    private func send(_ response: LocalResponse) {
        sendLocal(
            status: response.status, contentType: nil, closing: response.closesConnection
        ) { writer in
            append(response.fields, to: &writer)
        } body: {
            response.body
        }
    }
}
