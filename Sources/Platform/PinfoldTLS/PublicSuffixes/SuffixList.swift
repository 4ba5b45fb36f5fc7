import CPublicSuffix
import Trust

/// The public suffix list of the system (https://publicsuffix.org): the newer one of the package
/// `publicsuffix` and of what libpsl has built in. Read once, when it is first asked.
package struct SuffixList: PublicSuffixes {
    /// The list; nil where there is none at all. Immutable.
    private nonisolated(unsafe) static let list: OpaquePointer? = psl_latest(nil)

    package init() {}

    package func kind(of name: String) -> PublicSuffixKind {
        guard let list = Self.list else {
            // Nothing is known: only what cannot be anyone's is refused.
            return name.contains(".") ? .none : .unlisted
        }
        if psl_is_public_suffix2(list, name, pinfold_PSL_TYPE_REGISTRY) == 1 { return .listed }
        if psl_is_public_suffix2(list, name, pinfold_PSL_TYPE_COMPANY) == 1 { return .ofCompany }
        return name.contains(".") ? .none : .unlisted
    }
}
