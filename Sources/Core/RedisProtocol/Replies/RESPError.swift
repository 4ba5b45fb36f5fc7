/// Why the bytes of a server are not replies: the connection cannot be used any longer, since it is
/// not known where the next reply begins.
package enum RESPError: Error, Sendable, Hashable, CustomStringConvertible {
    /// No reply begins with this byte: it is another protocol, or the reader lost its place.
    case unknownType(UInt8)
    case lineTooLong(limit: Int)
    /// CR without LF, or LF without CR.
    case malformedLineEnd
    /// Not a decimal number, or beyond 64 bits.
    case malformedInteger
    case malformedDouble
    case malformedBigNumber
    /// Neither `t` nor `f`.
    case malformedBoolean
    /// A null, or the end of a streamed aggregate, with something on its line.
    case malformedNull
    /// The length of a bulk string, or the count of an aggregate, is no number, or not allowed.
    case malformedLength
    /// A verbatim string does not begin with three bytes and a colon.
    case malformedVerbatim
    case bulkTooLong(limit: Int)
    /// A bulk string is not followed by a line end where its length ends.
    case malformedBulkEnd
    case tooDeep(limit: Int)
    case tooManyElements(limit: Int)
    case replyTooLong(limit: Int)
    /// A streamed string goes on with something other than a part, or a part is outside of one.
    case misplacedPart
    /// The end of a streamed aggregate where there is none, or within an entry of a map.
    case misplacedEnd
    /// A push message within a reply.
    case misplacedPush

    package var description: String {
        switch self {
        case .unknownType(let byte):
            "a reply begins with the byte \(byte), which is no type of RESP"
        case .lineTooLong(let limit): "a line is longer than \(limit) bytes"
        case .malformedLineEnd: "a line does not end in CR LF"
        case .malformedInteger: "an integer is not a decimal number of 64 bits"
        case .malformedDouble: "a double is not a decimal number, inf or nan"
        case .malformedBigNumber: "a big number is not a decimal number"
        case .malformedBoolean: "a boolean is neither t nor f"
        case .malformedNull: "there are bytes on the line of a null or of an end"
        case .malformedLength: "a length or a count is not a decimal number, or not allowed"
        case .malformedVerbatim: "a verbatim string does not begin with a format and a colon"
        case .bulkTooLong(let limit): "a bulk string is longer than \(limit) bytes"
        case .malformedBulkEnd: "a bulk string does not end where its length says"
        case .tooDeep(let limit): "a reply has more than \(limit) levels"
        case .tooManyElements(let limit): "a reply has more than \(limit) elements"
        case .replyTooLong(let limit): "a reply is longer than \(limit) bytes"
        case .misplacedPart: "a streamed string goes on with something else, or there is none"
        case .misplacedEnd: "an end is not at the end of a streamed aggregate"
        case .misplacedPush: "a push message is within a reply"
        }
    }
}
