import HTTPCore

/// What a field's name means for a message in HTTP/2 (RFC 9113 §8).
enum FieldRole: UInt8 {
    case regular, cookie, priority, contentLength, host, te
    /// A field that is about one connection (RFC 9113 §8.2.2).
    case connection
    // Pseudo-fields (RFC 9113 §8.3, RFC 8441 §4).
    case method, scheme, authority, path, protocolName, status, unknownPseudo
    /// The name is not one.
    case invalid
}

/// What is known of a field once its bytes have been examined. The tables keep it, so that a field
/// that a peer sends with each message is examined once.
struct FieldTraits {
    let role: FieldRole
    /// Why a message with the field is malformed, apart from where it is in the message.
    let fault: MessageError?

    @inline(__always)
    init(role: FieldRole, fault: MessageError?) {
        self.role = role
        self.fault = fault
    }

    /// Whether nothing but its length matters: the case of most fields.
    @inline(__always)
    var isPlain: Bool { role == .regular && fault == nil }

    /// The traits of a field whose name has a role, for a value that is followed by at least eight
    /// readable bytes.
    /// - Parameter nameFault: why the name is invalid, if it is.
    @inline(__always)
    init(
        role: FieldRole, nameFault: MessageError?, value: UnsafeRawPointer, count: Int
    ) {
        self.role = role
        switch role {
        case .regular, .cookie, .priority: fault = ValueSyntax.faultOfField(value, count)
        case .path: fault = ValueSyntax.faultOfPath(value, count)
        case .invalid: fault = nameFault
        default: fault = ValueSyntax.faultOfRare(role, value, count)
        }
    }
}

/// The syntax of names: tokens without capital letters (RFC 9113 §8.2.1).
enum NameSyntax {
    /// What a name means, or why it is none.
    static func examine(
        _ name: UnsafeRawPointer, _ count: Int
    ) -> (role: FieldRole, fault: MessageError?) {
        guard count > 0 else { return (.invalid, .emptyFieldName) }
        if name.load(as: UInt8.self) == UInt8(ascii: ":") { return (pseudo(name, count), nil) }
        for offset in 0..<count {
            let byte = (name + offset).load(as: UInt8.self)
            guard ByteClass.isToken(byte) else { return (.invalid, .badFieldNameByte) }
            guard !ASCII.isUppercase(byte) else { return (.invalid, .capitalInFieldName) }
        }
        return (role(name, count), nil)
    }

    private static func role(_ name: UnsafeRawPointer, _ count: Int) -> FieldRole {
        func isName(_ text: StaticString) -> Bool {
            WordCopy.equal(name, text.utf8Start, count: count)
        }
        switch count {
        case 2: if isName("te") { return .te }
        case 4: if isName("host") { return .host }
        case 6: if isName("cookie") { return .cookie }
        case 7: if isName("upgrade") { return .connection }
        case 8: if isName("priority") { return .priority }
        case 10: if isName("connection") || isName("keep-alive") { return .connection }
        case 14:
            if isName("content-length") { return .contentLength }
            if isName("http2-settings") { return .connection }
        case 16: if isName("proxy-connection") { return .connection }
        case 17: if isName("transfer-encoding") { return .connection }
        default: break
        }
        return .regular
    }

    private static func pseudo(_ name: UnsafeRawPointer, _ count: Int) -> FieldRole {
        func isName(_ text: StaticString) -> Bool {
            WordCopy.equal(name, text.utf8Start, count: count)
        }
        switch count {
        case 5: if isName(":path") { return .path }
        case 7:
            if isName(":method") { return .method }
            if isName(":scheme") { return .scheme }
            if isName(":status") { return .status }
        case 9: if isName(":protocol") { return .protocolName }
        case 10: if isName(":authority") { return .authority }
        default: break
        }
        return .unknownPseudo
    }
}
