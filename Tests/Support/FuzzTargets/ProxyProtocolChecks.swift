import HTTPCore
import ProxyProtocols

extension FuzzTarget {
    /// The beginning of a connection. A PROXY header is read the same however it arrives, takes
    /// nothing of what follows it, and is read the same after it has been written.
    func checkProxyHeader(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let arrival = try Arrivals.read(bytes) { ends in HeaderArrival(bytes, ends) }
        guard let header = arrival.header, let count = arrival.count else { return false }
        guard count <= min(bytes.count, ProxyHeaderParser.maximumBytes) else {
            throw FuzzCheckError("\(count) bytes belong to the header")
        }
        for version in ProxyHeader.Version.allCases {
            let same = ProxyHeader(version, header.origin)
            let written = same.bytes(hasChecksum: true)
            let again = HeaderArrival(written + bytes, [written.count + bytes.count])
            guard again.header == same, again.count == written.count else {
                throw FuzzCheckError("\(written) was written, and read as \(again)")
            }
        }
        return true
    }

    /// The first byte says whether a password is needed; a client of SOCKS follows.
    ///
    /// It is read the same however it arrives, and its destination cannot be more than one
    /// authority.
    func checkSOCKS(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let client = Array(bytes.dropFirst())
        let talk = try Arrivals.read(client) { ends in
            SOCKSTalk(client, ends, needsPassword: selector & 1 != 0)
        }
        guard talk.consumed <= client.count else {
            throw FuzzCheckError("\(talk.consumed) bytes were taken")
        }
        guard case .connect(let destination)? = talk.steps.last else { return false }
        let authority = destination.authority
        guard authority.allSatisfy({ 0x21...0x7E ~= $0 }), destination.port > 0 else {
            throw FuzzCheckError("\(authority) is no authority")
        }
        return true
    }
}

extension FuzzTarget {
    /// A client's first bytes. As soon as they decide on a protocol, what follows changes nothing;
    /// a request whose head can be read is always taken for one, and so is TLS.
    func checkOpening(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let whole = OpeningProtocol(bytes.span)
        for count in 0...min(bytes.count, 512) {
            let early = OpeningProtocol(bytes.span.extracting(0..<count))
            guard early == .undecided || early == .begun || early == whole,
                early != .begun || whole != .undecided
            else { throw FuzzCheckError("\(count) bytes are \(early), all are \(whole)") }
        }
        var head = RequestHead()
        var parser = RequestHeadParser(limits: HeadLimits())
        if case .complete = try? parser.parse(bytes.span, into: &head),
            head.method != .other, whole != .http
        {
            throw FuzzCheckError("a request is taken for \(whole)")
        }
        return whole == .http || whole == .tls
    }
}

private struct HeaderArrival: Equatable {
    var header: ProxyHeader?
    /// Where it ends.
    var count: Int?
    var error: ProxyHeaderError?

    init(_ bytes: [UInt8], _ ends: [Int]) {
        var parser = ProxyHeaderParser()
        var start = 0
        for end in ends {
            do throws(ProxyHeaderError) {
                let (consumed, found) = try parser.take(bytes.span.extracting(start..<end))
                start += consumed
                if let found {
                    (header, count) = (found, start)
                    return
                }
            } catch {
                self.error = error
                return
            }
        }
    }
}

private struct SOCKSTalk: Equatable {
    var steps: [SOCKSHandshake.Step] = []
    var consumed = 0

    init(_ bytes: [UInt8], _ ends: [Int], needsPassword: Bool) {
        var handshake = SOCKSHandshake(needsPassword: needsPassword)
        for end in ends {
            while consumed < end {
                let (count, step) = handshake.take(bytes.span.extracting(consumed..<end))
                consumed += count
                switch step {
                case .needsMore: if count == 0 { return }
                case .check:
                    steps.append(step)
                    _ = handshake.judged(true)
                case .send, .connect, .refuse: steps.append(step)
                }
            }
        }
    }
}
