/// Lets the meter count CPU and memory until [`Window::end`].
#[derive(Debug)]
pub(crate) struct Window(&'static str);

impl Window {
    pub(crate) fn begin(name: &'static str) -> Self {
        println!("begin {name}");
        Self(name)
    }

    /// Ends it; what the meter counted is divided by this number.
    pub(crate) fn end(self, count: u64) {
        println!("end {} {count}", self.0);
    }
}
