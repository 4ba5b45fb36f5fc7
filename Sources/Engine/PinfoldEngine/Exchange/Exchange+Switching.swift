import HTTPCore

// Another protocol on a stream of HTTP/2 (RFC 8441), which the server was asked for by Upgrade.
extension Exchange {
    /// Whether the client can be given the answer to a request for another protocol.
    ///
    /// A client of HTTP/1 checks it itself. One of HTTP/2 takes every 2xx for the beginning of the
    /// protocol, and the key that a server of WebSockets must answer to was made by the gateway.
    func mayPass(answerToSwitch bytes: Span<UInt8>) -> Bool {
        switch request.version.carrier {
        case .http1: return true
        case .http2: break
        }
        guard response.status == 101 else { return !(200..<300).contains(response.status) }
        return withRequestHead { head in
            // The gateway's own is behind any that the client sent.
            guard let key = request.fields.last(named: "sec-websocket-key", in: head) else {
                return true
            }
            let expected = WebSocketKey.answer(to: head.extracting(key.indices))
            guard let answer = response.fields.only(named: "sec-websocket-accept", in: bytes)
            else { return false }
            return answer.indices.elementsEqual(expected.indices) { bytes[$0] == expected[$1] }
        }
    }
}

extension FieldSection {
    /// The value of the last field with a name that has no ID; `nil` if there is none.
    fileprivate func last(named name: StaticString, in bytes: Span<UInt8>) -> ByteRange? {
        var found: ByteRange?
        for field in self where field.id == .other && bytes.holds(lowercase: name, at: field.name) {
            found = field.value
        }
        return found
    }

    /// The value of the only field with a name that has no ID; `nil` if there is none, or several.
    fileprivate func only(named name: StaticString, in bytes: Span<UInt8>) -> ByteRange? {
        var found: ByteRange?
        for field in self where field.id == .other && bytes.holds(lowercase: name, at: field.name) {
            guard found == nil else { return nil }
            found = field.value
        }
        return found
    }
}
