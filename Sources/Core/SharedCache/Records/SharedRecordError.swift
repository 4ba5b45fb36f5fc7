/// Why something that is stored in the engine is not used.
package enum SharedRecordError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Another program's, or not even the beginning of one of ours.
    case notOurs
    /// Written by a version of this program that is too different.
    case unknownMajor(UInt8)
    /// Written with a secret that this gateway does not have.
    case unknownSecret(UInt32)
    /// The code is wrong: it was damaged, moved here from another name, or forged.
    case wrongCode
    /// The body is not the one that the record was written for.
    case wrongBody
    /// It ends before its end, or goes on after it.
    case wrongLength
    /// A record of another kind.
    case otherKind(UInt8)
    /// It has a field that has to be understood, by a later version.
    case unsupportedField(UInt16)
    /// Its code is right, but a field is missing or is not what it should be.
    case malformed
    /// It is another key's, or another variant's: two have the same name.
    case otherKey

    package var description: String {
        switch self {
        case .notOurs: "it is not a record of Pinfold"
        case .unknownMajor(let major): "its format is version \(major), and 1 is understood"
        case .unknownSecret(let id):
            "it was written with the secret \(SharedName.hexadecimal(id)), "
                + "which is not in the key file"
        case .wrongCode: "its HMAC is wrong"
        case .wrongBody: "its body has another digest"
        case .wrongLength: "it is not as long as it says"
        case .otherKind(let kind): "it is a record of kind \(kind)"
        case .unsupportedField(let number): "its field \(number) is not understood"
        case .malformed: "its fields are not those of its kind"
        case .otherKey: "it is another resource's"
        }
    }

    /// What to do with what is stored. In all cases it is a miss.
    package var handling: SharedRecordHandling {
        switch self {
        case .notOurs, .unknownMajor, .unsupportedField, .otherKey: .leave
        case .unknownSecret: .leaveAndReport
        case .wrongCode, .wrongBody, .wrongLength, .otherKind, .malformed: .deleteAndReport
        }
    }
}

/// What to do with a record that cannot be used.
package enum SharedRecordHandling: Sendable, Hashable {
    /// Somebody else can use it.
    case leave
    /// The same, but an operator should know: the gateways' secrets differ.
    case leaveAndReport
    /// Nobody can use it. It is counted apart: it may have been forged.
    case deleteAndReport
}
