/// The delays of the activity indicator.
package struct ActivityConfiguration: Sendable, Equatable {
    /// How long activity must last before it is shown.
    package var activationDelayMilliseconds: Int64 = 1_000
    /// How long there must be no activity before it is hidden.
    package var completionDelayMilliseconds: Int64 = 170

    /// Creates the defaults.
    package init() {}
}
