import HTTPCore

@testable import PinfoldEngine

/// A request of the simulation, and its progress.
final class SimulatedRequest {
    let number: Int
    let url: Int
    let method: String
    /// What it names if it is CONNECT.
    private(set) var target: SimulatedTarget?
    /// The policies' trust when it began, and whether its client is served.
    var trust = 0
    var isServed = true
    /// How long a tunnel may be idle under the policy of that time.
    var tunnelMilliseconds: Int64 = 0
    /// The exchange's ingress, as an index of the world's ingresses.
    let ingress: Int
    private(set) var head: [UInt8] = []
    private(set) var content: [UInt8] = []
    private(set) var framing = BodyFraming.none
    private(set) var trailers: TrailerSection?
    /// How much of the content lies behind the head in its buffer.
    private(set) var bytesWithHead = 0
    /// The value that responses with Vary are chosen by.
    let variant: Int
    private(set) var isConditional = false
    /// The tag of that condition.
    private(set) var tag: String?
    private(set) var hasRange = false
    private(set) var asksForTrailers = false
    /// Whether it asks to leave HTTP.
    private(set) var asksForUpgrade = false
    /// Its response must not be given to others.
    private(set) var isPrivate = false

    /// The step in which it began.
    var began = 0
    /// Its client's worker, and how often that had loaded another configuration by then.
    var worker = 0
    var reloads = 0
    /// What its own streams received.
    var brought: [Int] = []
    /// A server has answered 304 although it was not asked on a condition.
    var hasOddNotModified = false

    init(_ world: SimulatedWorld, number: Int) {
        self.number = number
        url = world.random.below(world.urls.count)
        let kind = world.random.below(109)
        switch kind {
        case 0..<68: method = "GET"
        case 68..<74: method = "HEAD"
        case 74..<84: method = "POST"
        case 84..<92: method = "PUT"
        case 92..<96: method = "DELETE"
        case 96..<100: method = "OPTIONS"
        default: method = "CONNECT"
        }
        let ingresses = world.urls[url].ingresses
        variant = world.random.below(2)
        guard method != "CONNECT" else {
            ingress = world.random.chance(95) ? 0 : 3
            makeTunnel(world)
            return
        }
        ingress = ingresses[world.random.below(ingresses.count)]
        makeContent(world)
        makeHead(world)
    }

    private func makeTunnel(_ world: SimulatedWorld) {
        let port = world.random.chance(92) ? SimulatedTarget.port : 25
        let target = SimulatedTarget(name: world.random.pick(world.destinations), port: port)
        self.target = target
        let head = "CONNECT \(target.text) HTTP/1.1\r\nHost: \(target.text)\r\n"
        makeHead(of: "\(head)X-Request: \(number)\r\n\r\n", world)
    }

    var isSafe: Bool { method == "GET" || method == "HEAD" || method == "OPTIONS" }

    private func makeContent(_ world: SimulatedWorld) {
        let odds = method == "POST" || method == "PUT" ? 90 : method == "DELETE" ? 30 : 3
        guard world.random.chance(odds) else { return }
        var count = 1 + world.random.below(2000)
        if world.random.chance(2) { count = 60_000 + world.random.below(60_000) }
        content = world.random.bytes(count)
        if world.random.chance(60) {
            framing = .length(UInt64(count))
            switch world.random.below(3) {
            case 0 where count < 8000: bytesWithHead = count
            case 1: bytesWithHead = world.random.below(min(count, 8000))
            default: break
            }
        } else {
            framing = .chunked
            if world.random.chance(30) { trailers = world.random.pick(Trailers.all) }
        }
        isPrivate = true
    }

    private func makeHead(_ world: SimulatedWorld) {
        let url = world.urls[self.url]
        let version = world.random.chance(92) || framing == .chunked ? "1.1" : "1.0"
        var text = "\(method) \(world.ingressTarget(ingress, url)) HTTP/\(version)\r\n"
        text += "Host: \(url.host)\r\nX-Request: \(number)\r\nX-Vary: \(variant)\r\n"
        switch framing {
        case .length(let count): text += "Content-Length: \(count)\r\n"
        case .chunked: text += "Transfer-Encoding: chunked\r\n"
        case .none, .untilClose: break
        }
        if framing != .none, version == "1.1", world.random.chance(10) {
            text += "Expect: 100-continue\r\n"
        }
        switch world.random.below(40) {
        case 0: text += "Cache-Control: no-cache\r\n"
        case 1:
            text += "Cache-Control: no-store\r\n"
            isPrivate = true
        case 2: text += "Cache-Control: max-stale=5\r\n"
        case 3: text += "Cache-Control: only-if-cached\r\n"
        case 4: text += "Cache-Control: max-age=0\r\n"
        case 5:
            text += "Authorization: Basic YTpi\r\n"
            isPrivate = true
        case 6: text += "Cache-Control: stale-if-error=60\r\n"
        default: break
        }
        if world.random.chance(8), let known = url.current {
            var suffix = ""
            if world.isRuled, world.random.chance(60) {
                suffix = SimulatedRules.suffix(world.random.pick(SimulatedRules.types))
            }
            let tag = "\"\(known)\(suffix)\""
            text += "If-None-Match: \(tag)\r\n"
            self.tag = tag
            isConditional = true
        }
        if method == "GET", world.random.chance(25) {
            text += "Range: bytes=\(range(world))\r\n"
            hasRange = true
            if world.random.chance(10), let known = url.current {
                text += "If-Range: \"\(known)\"\r\n"
            }
        }
        var connection: [String] = []
        if version == "1.1", world.random.chance(25) {
            text += "TE: trailers\r\n"
            connection.append("TE")
            asksForTrailers = true
        }
        if version == "1.1", method == "GET", world.random.chance(2) {
            text += "Upgrade: websocket\r\n"
            connection.append("Upgrade")
            asksForUpgrade = content.isEmpty
        }
        if world.random.chance(5) { connection.append("close") }
        if !connection.isEmpty {
            text += "Connection: \(connection.joined(separator: ", "))\r\n"
        }
        makeHead(of: text + "\r\n", world)
    }

    /// The head as the client's connection brings it.
    private func makeHead(of text: String, _ world: SimulatedWorld) {
        switch world.carriers.clients {
        case .http1: head = Array(text.utf8)
        case .http2:
            head = Array(text.assembledFromHTTP2.utf8)
            // It has no Upgrade, and takes trailers unasked.
            asksForUpgrade = false
            asksForTrailers = true
        }
    }
}

extension SimulatedRequest {
    private func range(_ world: SimulatedWorld) -> String {
        let first = world.random.below(world.random.pick([50, 400, 1500]))
        switch world.random.below(5) {
        case 0: return "\(first)-"
        case 1: return "-\(1 + first)"
        default: return "\(first)-\(first + world.random.below(800))"
        }
    }
}

/// Trailer sections to choose from.
enum Trailers {
    static let all: [TrailerSection] = (0..<4).compactMap { number in
        var decoder = BodyDecoder(.chunked)
        let bytes = Array("0\r\nX-Trailer: \(number)\r\n\r\n".utf8)
        guard case .end? = try? decoder.decode(bytes.span) else { return nil }
        return decoder.chunked.trailerSection
    }
}

/// Something that requests are for.
struct SimulatedURL {
    let host: String
    let path: String
    /// The ingresses through which it is asked for.
    let ingresses: [Int]
    /// What its server has at the moment.
    var current: Int?
    /// The last step in which a server took a request that changed it, as the gateway knew.
    var invalidated = -1
}

/// A server's response, the same bytes each time.
final class Representation {
    let number: Int
    let url: Int
    let status: Int
    let body: [UInt8]
    let framing: BodyFraming
    let fields: String
    /// It is only for the client that requested it.
    let isPrivate: Bool
    /// The variant that it is chosen for; `nil` for all.
    let variant: Int?
    let trailers: TrailerSection?
    /// It has an entity tag.
    let hasTag: Bool
    /// It is of a type that rules are about.
    let isImage: Bool
    /// The latest step in which a request was sent that it, or its confirmation, answered.
    var asked = -1
    /// The policies under which it was obtained.
    var trusts: [UInt64?] = []

    /// A part of another one.
    init(_ positions: Range<Int>, of whole: Representation) {
        number = whole.number
        url = whole.url
        status = 206
        body = Array(whole.body[positions])
        framing = .length(UInt64(positions.count))
        isPrivate = whole.isPrivate
        variant = whole.variant
        trailers = nil
        hasTag = whole.hasTag
        isImage = whole.isImage
        let range = "\(positions.lowerBound)-\(positions.upperBound - 1)"
        fields = whole.fields + "Content-Range: bytes \(range)/\(whole.body.count)\r\n"
    }

    init(
        _ world: SimulatedWorld, number: Int, url: Int, status: Int, isPrivate: Bool,
        variant: Int
    ) {
        self.number = number
        self.url = url
        self.status = status
        var count = world.random.below(1500)
        if world.random.chance(2) { count = 40_000 + world.random.below(40_000) }
        if status == 204 { count = 0 }
        body = world.random.bytes(count)
        switch world.random.below(10) {
        case 0..<6 where status != 204: framing = .length(UInt64(count))
        case 6..<9 where status != 204: framing = .chunked
        default: framing = status == 204 ? .none : .untilClose
        }
        trailers =
            framing == .chunked && world.random.chance(20)
            ? world.random.pick(Trailers.all) : nil
        var control: String
        var isPrivate = isPrivate
        switch world.random.below(12) {
        case 0:
            control = "no-store"
            isPrivate = true
        case 1:
            control = "private, max-age=60"
            isPrivate = true
        case 2: control = "no-cache"
        case 3: control = "max-age=0"
        case 4..<6: control = "max-age=1, stale-while-revalidate=30"
        case 6..<8: control = "max-age=1, stale-if-error=300"
        case 8: control = "max-age=600"
        default: control = "max-age=\(1 + world.random.below(4))"
        }
        self.isPrivate = isPrivate
        let varies = world.random.chance(15)
        self.variant = varies ? variant : nil
        var text = "X-Id: \(number)\r\nCache-Control: \(control)\r\n"
        hasTag = status == 200 && world.random.chance(85)
        if hasTag { text += "ETag: \"\(number)\"\r\n" }
        if varies { text += "Vary: X-Vary\r\n" }
        let hasType = world.random.chance(50)
        let isImage = world.isRuled && world.random.chance(60)
        self.isImage = isImage
        if isImage {
            text += "Content-Type: image/webp\r\n"
        } else if hasType {
            text += "Content-Type: text/plain\r\n"
        }
        fields = text
    }
}
