/// Why a file is not a list of revoked certificates.
package enum RevocationListError: Error, Hashable, Sendable {
    case empty
    case badArmor
    /// A PEM block with this label.
    case otherBlock(String)

    /// What is wrong, for a configuration's error line.
    package var problem: String {
        switch self {
        case .empty: "the file is empty"
        case .badArmor: "the PEM armor is damaged"
        case .otherBlock(let label): "a PEM block is \(label), not X509 CRL"
        }
    }
}

/// Files with certificate revocation lists.
package enum RevocationListFile {
    /// The DER of the lists, in order; never empty. A file that is not PEM is assumed to be DER.
    package static func decode(_ contents: [UInt8]) throws(RevocationListError) -> [[UInt8]] {
        guard !contents.isEmpty else { throw .empty }
        guard PEM.isArmored(contents) else { return [contents] }
        let blocks: [PEMBlock]
        do throws(PinError) {
            blocks = try PEM.blocks(contents)
        } catch {
            throw .badArmor
        }
        var lists: [[UInt8]] = []
        for block in blocks {
            guard block.label == "X509 CRL" else {
                throw .otherBlock(String(block.label.prefix(40)))
            }
            lists.append(block.bytes)
        }
        guard !lists.isEmpty else { throw .empty }
        return lists
    }
}
