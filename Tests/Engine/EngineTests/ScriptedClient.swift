import CLinux
import CacheStore
import EventLoop
import HTTPCore

@testable import PinfoldEngine

/// A simulated client connection: it sends what its script says, and reads what it is sent when the
/// world allows it. Calls that a stream must never receive are violations.
final class ScriptedClient: DownstreamStream {
    /// A request's content in transit.
    private final class Upload {
        var sent = 0
        var isPaused = true
    }

    /// Output that waits to be written; the bytes are read at that time.
    private enum Piece {
        case bytes(UnsafeRawBufferPointer, AnyObject)
        case file(Int32, offset: Int, count: Int, AnyObject)
    }

    unowned let world: SimulatedWorld
    let index: Int
    /// The worker that its connection belongs to.
    let worker: Int
    let account: ClientAccount?
    private(set) var exchange: Exchange?
    private(set) var request: SimulatedRequest?
    private var upload: Upload?
    private var headBuffer: Buffer?
    private var isDriving = false
    private var output: [Piece] = []

    // What was sent to it.
    private var head: ReceivedHead?
    /// The reason phrase of the status line, if any.
    private var phrase = ""
    private var received: [UInt8] = []
    private var given = 0
    private var hasEnd = false
    private var writtenBeforeHead: UInt64?
    /// After a 101 it gets the server's connection itself.
    private(set) var takesProtocols = false
    private var hasServer = false
    private var responseBytes: UInt64 = 0
    private var contentBytes: UInt64 = 0

    init(_ world: SimulatedWorld, index: Int, account: ClientAccount?) {
        self.world = world
        self.index = index
        worker = index % world.loops.count
        self.account = account
    }

    var isIdle: Bool { exchange == nil }
    var localEndpoint: Endpoint? { nil }
    var sentBytes: (total: UInt64, content: UInt64) { (responseBytes, contentBytes) }
    var isFlushed: Bool { output.isEmpty }
    var takesInterimResponses: Bool {
        exchange?.request.version.hasInterimResponses ?? false
    }
    private var number: Int { request?.number ?? -1 }
    private var environment: Environment { world.process.environments[worker] }

    // MARK: What it does

    /// Sends a request's head.
    func begin(_ request: SimulatedRequest) {
        let exchange = environment.takeExchange()
        world.noteExchange(exchange)
        self.exchange = exchange
        self.request = request
        head = nil
        phrase = ""
        received.removeAll(keepingCapacity: true)
        (given, hasEnd, responseBytes, contentBytes) = (0, false, 0, 0)
        writtenBeforeHead = nil
        // Not by an additional random choice: the worlds of known seeds must stay the same.
        takesProtocols = request.asksForUpgrade && request.number.isMultiple(of: 2)
        hasServer = false
        let bytes = request.head.count + request.bytesWithHead
        let buffer = environment.loop.buffers.take(bytes: bytes)
        buffer.writable.copyBytes(from: request.head)
        buffer.end = request.head.count
        if request.bytesWithHead > 0 {
            buffer.writable.copyBytes(from: request.content[0..<request.bytesWithHead])
            buffer.end += request.bytesWithHead
        }
        var parser = RequestHeadParser(carrier: world.carriers.clients)
        let span = Span<UInt8>(_unsafeElements: buffer.readable.bindMemory(to: UInt8.self))
        guard case .complete(request.head.count)? = try? parser.parse(span, into: &exchange.request)
        else { return world.fail("request \(number) is not parsed") }
        buffer.start += request.head.count
        upload = request.framing == .none ? nil : Upload()
        if exchange.request.version.marksEnd {
            let isRight = (try? exchange.request.decideContent(follows: upload != nil)) != nil
            check(isRight && exchange.request.framing == request.framing, "another framing")
        }
        headBuffer = buffer
        world.note("begins", index, number)
        request.isServed = !world.random.chance(1)
        let isBegun = exchange.begin(
            client: self, ingress: world.ingresses[request.ingress], peer: world.peer,
            buffer: buffer, headStart: 0, hasBody: upload != nil, isServed: request.isServed)
        check(isBegun, "an exchange object that is not free")
        world.noteBegun(exchange.report.id, request)
        exchange.route(at: world.ingresses[request.ingress])
    }

    /// Makes one step; returns false if there is none to make.
    func step() -> Bool {
        guard let exchange else { return false }
        let canSend = upload.map { !$0.isPaused } ?? false
        if !world.isSettling {
            switch world.random.below(100) {
            case 0..<2:
                goAway()
                return true
            case 2..<4 where canSend || !output.isEmpty:
                world.note("times out", index, number)
                exchange.clientTimedOut()
                return true
            case 4 where canSend:
                world.note("breaks its content", index, number)
                upload = nil
                exchange.contentFailed(.badFieldValueByte)
                return true
            default: break
            }
        }
        if canSend, output.isEmpty || world.random.chance(50) {
            drive()
            return true
        }
        guard !output.isEmpty else { return false }
        if flush() {
            world.note("drained", index, number)
            exchange.clientDrained()
        }
        return true
    }

    /// It closes its connection, whatever is in progress.
    func goAway() {
        world.note("goes away", index, number)
        checkContent()
        output.removeAll()
        let gone = exchange
        if gone?.serving.translation != nil { world.count(.abandoned) }
        exchange = nil
        upload = nil
        headBuffer = nil
        world.ended(.clientWent)
        gone?.clientGone()
    }

    /// Sends content until asked to pause, or for a while.
    private func drive() {
        guard !isDriving else { return }
        isDriving = true
        defer { isDriving = false }
        for _ in 0...world.random.below(3) {
            guard let upload, !upload.isPaused, exchange != nil else { return }
            sendPart(of: upload)
        }
    }

    private func sendPart(of upload: Upload) {
        guard let exchange, let request else { return }
        let left = request.content.count - upload.sent
        guard left > 0 else { return endContent(upload) }
        let isWithHead = upload.sent < request.bytesWithHead
        let room = isWithHead ? request.bytesWithHead - upload.sent : left
        let count = world.random.chance(40) ? room : 1 + world.random.below(room)
        var isLast = count == left
        if case .chunked = request.framing { isLast = false }
        let buffer: Buffer
        let content: UnsafeRawBufferPointer
        if isWithHead, let headBuffer {
            buffer = headBuffer
            content = UnsafeRawBufferPointer(rebasing: buffer.readable[0..<count])
            buffer.start += count
        } else {
            buffer = environment.loop.buffers.take(bytes: count)
            buffer.writable.copyBytes(from: request.content[upload.sent..<(upload.sent + count)])
            buffer.end = count
            content = buffer.readable
        }
        upload.sent += count
        world.note("sends content", index, count)
        let goesOn = exchange.content(content, owner: buffer, isLast: isLast)
        upload.isPaused = !goesOn
        // Its buffer is reused for reading.
        if goesOn, !isLast, !isWithHead {
            buffer.memory.initializeMemory(as: UInt8.self, repeating: 0xEE)
        }
        if isLast, self.upload === upload { endContent(upload) }
    }

    private func endContent(_ upload: Upload) {
        world.note("ends its content", index, number)
        self.upload = nil
        exchange?.contentEnded(trailers: request?.trailers)
    }

    // MARK: What it is sent

    func makeHead(status: UInt16, phrase: Span<UInt8>?, room: Int) -> HeadDraft {
        self.phrase = ""
        if let phrase, request?.target != nil {
            self.phrase = phrase.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        }
        let needed = room + (phrase?.count ?? 0) + 160
        var head = HeadDraft(environment.loop.buffers.take(bytes: needed))
        head.fields.appendStatusLine(status, phrase: phrase)
        return head
    }

    func sendInterim(_ head: consuming HeadDraft) {
        check(self.head == nil, "an interim response behind the final one")
        head.fields.appendLineEnd()
        if let head = head.finished() { output.append(.bytes(head.readable, head)) }
    }

    func sendHead(_ head: consuming HeadDraft, framing: ContentFraming, closing: Bool) {
        check(self.head == nil, "a second final head")
        head.fields.appendLineEnd()
        writtenBeforeHead = output.isEmpty ? responseBytes : nil
        guard let buffer = head.finished() else { return world.fail("a head without room") }
        self.head = ReceivedHead(buffer.readable, framing: framing)
        output.append(.bytes(buffer.readable, buffer))
    }

    func withdrawHead() -> Bool {
        check(head != nil, "a head taken back that was not sent")
        guard writtenBeforeHead == responseBytes, !output.isEmpty else { return false }
        world.note("head taken back", index, number)
        output.removeAll()
        head = nil
        writtenBeforeHead = nil
        (given, hasEnd, contentBytes) = (0, false, 0)
        received.removeAll(keepingCapacity: true)
        return true
    }

    func send(_ content: UnsafeRawBufferPointer, owner: AnyObject) {
        guard content.count > 0 else { return }
        noteContent(content.count)
        output.append(.bytes(content, owner))
    }

    func sendFile(_ file: MemoryFile, offset: Int, count: Int) {
        noteContent(count)
        output.append(.file(file.fileDescriptor, offset: offset, count: count, file))
    }

    private func noteContent(_ count: Int) {
        check(head != nil && !hasEnd, "content without a head or behind the end")
        check(head?.framing != ContentFraming.none, "content where there may be none")
        given += count
        contentBytes += UInt64(count)
    }

    func finish(trailers: TrailerSection?) -> Bool {
        check(head != nil && !hasEnd, "an end without a head, or a second one")
        hasEnd = true
        if let head, let request { world.checkEnd(head, given, trailers, request) }
        return flush()
    }

    func flush() -> Bool {
        check(exchange != nil, "a flush behind the end")
        let all = world.isSettling || world.random.chance(65)
        var pieces = all ? output.count : world.random.below(output.count + 1)
        while pieces > 0 {
            pieces -= 1
            write(output.removeFirst())
        }
        return output.isEmpty
    }

    private func write(_ piece: Piece) {
        let isContent = head != nil && responseHeadIsWritten
        switch piece {
        case .bytes(let bytes, _):
            responseBytes += UInt64(bytes.count)
            if isContent { received.append(contentsOf: bytes) }
        case .file(let file, let offset, let count, _):
            responseBytes += UInt64(count)
            let read = [UInt8](unsafeUninitializedCapacity: count) { memory, written in
                written = max(0, pread(file, memory.baseAddress, count, off_t(offset)))
            }
            received += read
        }
        if !isContent, let head, case .bytes(let bytes, _) = piece, head.isAt(bytes) {
            self.head?.isWritten = true
        }
    }

    private var responseHeadIsWritten: Bool { head?.isWritten ?? false }

    func resumeContent() {
        check(exchange != nil, "content asked for behind the end")
        guard let upload, upload.isPaused else { return }
        upload.isPaused = false
        if world.random.chance(60) { drive() }
    }

    func pauseContent() { upload?.isPaused = true }

    func expectPauses() {}

    func exchangeEnded(cut: Bool) {
        guard let exchange else { return world.fail("an exchange ends twice") }
        world.note(cut ? "is cut off" : "has its response", index, number)
        self.exchange = nil
        if case .transformation(let failure)? = exchange.remarks.fault {
            if failure.reason == .overloaded { world.count(.overloaded) }
            if failure.reason == .responseImageRefused, exchange.report.server == nil {
                world.count(.refusedFromStore)
            }
        }
        environment.recycle(exchange)
        headBuffer = nil
        upload = nil
        if hasServer { return world.ended(.givenServer) }
        if !cut { check(hasEnd && output.isEmpty, "over, and the response is not complete") }
        checkContent()
        check(!cut || head != nil || request?.target == nil, "CONNECT is not answered")
        if let request, let head { world.checkReply(head.status, phrase, request) }
        world.ended(cut ? .cut : head?.hasID ?? false ? .complete : .ownReply)
        output.removeAll()
        // The next request may already be there.
        if !isDriving, world.random.chance(30) { world.beginNext(on: self) }
    }

    func handOver(after head: consuming HeadDraft, isUpgrade: Bool) -> DownstreamHandover? {
        check(self.head == nil && exchange != nil, "handed over behind a final head")
        check(isUpgrade == (request?.target == nil), "a tunnel for an upgrade, or the other way")
        world.note("handed over", index, number)
        head.fields.appendLineEnd()
        guard let request, let exchange, let head = head.finished() else { return nil }
        self.exchange = nil
        headBuffer = nil
        upload = nil
        output.removeAll()
        world.ended(.switched)
        return world.openTunnel(for: request, of: exchange, head: head)
    }

    func switchProtocols(after head: consuming HeadDraft, to server: UpstreamHandover) {
        check(takesProtocols && !hasServer, "given a connection that it does not take")
        check(self.head == nil && exchange != nil, "given a connection behind a final head")
        check(server.leftover == nil, "given what the server has not sent")
        world.note("is given the connection", index, number)
        hasServer = true
        head.fields.appendLineEnd()
        if let head = head.finished() {
            let text = String(decoding: head.readable, as: UTF8.self).lowercased()
            check(text.hasPrefix("http/1.1 101 "), "given a connection behind another head")
            for field in ["connection: upgrade", "upgrade: websocket"] {
                check(text.ranges(of: "\r\n\(field)\r\n").count == 1, "a head without its fields")
            }
        }
        world.takeServer(server.transport)
    }

    private func checkContent() {
        guard let head, let request, head.isWritten else { return }
        world.check(received, isComplete: hasEnd && output.isEmpty, of: head, for: request)
    }

    private func check(_ condition: Bool, _ what: StaticString) {
        if !condition { world.fail("client \(index), request \(number): \(what)") }
    }
}
